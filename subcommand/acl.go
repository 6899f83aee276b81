package subcommand

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/internal/cli"
)

const aclHelp = `
Says what a Consul token may do, and why. What a token is made of is read with
CONSUL_HTTP_TOKEN, which needs acl:read for others than itself; or it comes from
a file.

  acl can [flags] RESOURCE[:SEGMENT] ACCESS ...
                             allow, deny or unknown for each pair
  acl explain [flags] RESOURCE[:SEGMENT] ACCESS ...
                             the rules that were looked at, why each won or
                             lost, and what would change the answer
  acl rules [flags]          all rules of the subject as one policy
  acl lint [flags] [FILE ...]
                             what policies do not do although they seem to
  acl export                 a server's ACL objects as a file, without secrets

RESOURCE is acl, agent, event, intention, key, keyring, mesh, node, operator,
peering, query, service or session. ACCESS is read or write, for keys also list
and write-prefix.

Whose rights: the token of CONSUL_HTTP_TOKEN, unless flags name another subject.
  -token-file FILE     the token whose secret is in FILE
  -accessor ID         the token with this accessor
  -policy-file FILE    the policy in FILE; may be repeated. Alone, it needs no
                       server
  -login METHOD        what a login by this auth method would get, with
    -entity-name NAME, -entity-id ID, -account-id ID, -entity-path PATH,
    -entity-tag KEY=VALUE (repeatable), for aws-iam;
    -claim NAME=VALUE, -group GROUP (repeatable), for jwt and oidc

More flags:
  -from FILE           read an export instead of a server
  -default-policy P    allow or deny, when the server does not say (deny with
                       -policy-file alone)
  -datacenter NAME     the answering datacenter, when the server does not say
  -queries FILE        of can: more queries, one RESOURCE[:SEGMENT] ACCESS a
                       line; - is standard input
  -engine ENGINE       of can and explain: resolver (our reading of the rules),
                       server (Consul's own word) or both; server and both need
                       the token itself, not only its accessor
  -json                for machines: one object a line

Exit status of can and explain: 0 all allowed, 2 any denied or disputed, 3 any
unknown or the server unreachable, 1 usage. Of lint: 0 clean, 2 findings.

Environment: CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN and the rest of Consul's.

Example:
  $ consul-ecs acl can -accessor 3f2a1b0c-… service:web write key:app/ list
  allow    service:web write  by service "web" = write, token 3f2a1b0c… → service identity "web"
  deny     key:app/ list  no rule applies: the default policy is deny`

func aclCommand() cli.Command {
	return cli.Command{
		Synopsis: "Say what a Consul token may do, and why",
		Usage:    "acl can|explain|rules|lint|export [flags] ...",
		Help:     aclHelp,
		Run:      runACL,
	}
}

// aclVerbs are the words after acl. Each declares its flags and runs.
func aclVerbs() map[string]func(*flag.FlagSet) func(context.Context, *cli.Invocation, []string) error {
	return map[string]func(*flag.FlagSet) func(context.Context, *cli.Invocation, []string) error{
		"can":     aclCan,
		"explain": aclExplain,
		"rules":   aclRules,
		"lint":    aclLint,
		"export":  aclExport,
	}
}

func runACL(ctx context.Context, inv *cli.Invocation) error {
	if len(inv.Args) == 0 {
		return cli.Usagef("say what to do: can, explain, rules, lint or export; acl --help tells more")
	}
	verb, ok := aclVerbs()[inv.Args[0]]
	if !ok {
		return cli.Usagef("unknown word %q: want can, explain, rules, lint or export", inv.Args[0])
	}
	fs := flag.NewFlagSet(inv.Args[0], flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	run := verb(fs)
	switch err := fs.Parse(inv.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		_, err := fmt.Fprintf(inv.Stdout, "Usage: consul-ecs %s\n%s\n", aclCommand().Usage, aclHelp)
		return err
	case err != nil:
		return cli.Usagef("%s: %w", inv.Args[0], err)
	}
	if i := slices.IndexFunc(fs.Args(), func(a string) bool { return strings.HasPrefix(a, "-") && a != "-" }); i >= 0 {
		return cli.Usagef("%s: %s: flags come before other words", inv.Args[0], fs.Arg(i))
	}
	return run(ctx, inv, fs.Args())
}

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
	"github.com/meshtask/consul-ecs/internal/exit"
)

const aclHelp = `
Reports what a Consul token may do, and why.

  acl can      allow, deny or unknown for each question
  acl explain  which rule wins, which lose and why, where each comes from, and
               the smallest change that would reverse the answer
  acl rules    all rules of the subject as one policy
  acl lint     rules with no effect, or with more than they seem to have: in FILES
               (- is standard input), or in everything a server has
  acl export   a server's ACL objects as a file, without secrets

A question is RESOURCE[:SEGMENT] ACCESS. RESOURCE is acl, agent, event,
intention, key, keyring, mesh, node, operator, peering, query, service or
session. ACCESS is read or write, for keys also list and write-prefix. Flags
come first.

Whose rights: the token of CONSUL_HTTP_TOKEN, unless flags name another subject.
Everything is read with CONSUL_HTTP_TOKEN, which needs acl:read for more than
the names of what it links to.
  -token-file FILE     the token whose secret is in FILE
  -accessor ID         the token with this accessor
  -policy-file FILE    the policy in FILE; may be repeated. Alone, it needs no
                       server
  -login METHOD        what a login by this auth method would get; attributes
                       that are not given are empty
    -entity-name NAME, -entity-id ID, -account-id ID, -entity-path PATH,
    -entity-tag KEY=VALUE (repeatable), for aws-iam
    -claim NAME=VALUE (repeatable; NAME as in selectors), -group GROUP (the same
    as -claim groups=GROUP), for jwt and oidc

More flags:
  -from FILE           read an export instead of a server
  -datacenter NAME     the datacenter that answers, if not the server's own
  -default-policy P    allow or deny, when the server does not say (deny with
                       -policy-file alone)
  -queries FILE        of can and explain: more questions, one a line; - is
                       standard input
  -engine ENGINE       of can and explain: resolver (evaluates the rules itself),
                       server (asks Consul; does not explain) or both;
                       server and both need the token itself
  -json                for machines: one object a line

An answer is unknown when rules that could change it could not be read. When the
engines differ the answer is disagree. A server without ACLs allows everything,
with a warning.

Exit status of can and explain: 0 all allowed; 2 any denied; 3 any unknown, an
allow of the server that its rules deny, or the server unreachable; 1 usage. Of
lint: 0 clean, 2 findings.

Environment: CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN and the rest of Consul's.
Namespaces and partitions are not supported.

Examples:
  $ consul-ecs acl can -token-file task.token service:web write key:app/ list
  deny     service:web write  by service "web" = deny, token 3f2a1b0c… → role "ops" → policy "freeze" line 2
  allow    key:app/ list      by key_prefix "app/" = write, token 3f2a1b0c… → role "ops" → policy "ops" line 2
  $ consul-ecs acl explain -accessor 3f2a1b0c-65de-5efd-423c-2502e13ae5e3 service:web write
  service:web write  DENY
    wins    service "web" = deny
            token 3f2a1b0c… → role "ops" → policy "freeze" line 2
    loses   service "web" = write: deny outranks write
            token 3f2a1b0c… → service identity "web"
    to allow
            remove  service "web" = deny, token 3f2a1b0c… → role "ops" → policy "freeze" line 2
  $ consul-ecs acl can -login iam -entity-name web-task -entity-tag team=blue service:web write
  $ consul-ecs acl can -policy-file new.hcl -queries wanted.txt -json
  $ consul-ecs acl rules -accessor 3f2a1b0c-65de-5efd-423c-2502e13ae5e3 > merged.hcl
  $ consul-ecs acl lint *.hcl
  web.hcl:3: inert: servce is ignored: there is no such resource; did you mean "service"?
  $ consul-ecs acl export > acl.json
  $ consul-ecs acl can -from acl.json -accessor 3f2a1b0c-65de-5efd-423c-2502e13ae5e3 acl write
More: docs/ACL.md`

func aclCommand() cli.Command {
	return cli.Command{
		Synopsis: "Report what a Consul token may do, and why",
		Usage:    "acl can|explain|rules|lint|export [flags] ...",
		Help:     aclHelp,
		Run:      runACL,
	}
}

// aclVerb runs a word after acl when its flags are parsed.
type aclVerb = func(ctx context.Context, inv *cli.Invocation, args []string) error

// aclVerbs declare their flags.
func aclVerbs() map[string]func(*flag.FlagSet) aclVerb {
	return map[string]func(*flag.FlagSet) aclVerb{
		"can":     aclCan,
		"explain": aclExplain,
		"rules":   aclRules,
		"lint":    aclLint,
		"export":  aclExport,
	}
}

func runACL(ctx context.Context, inv *cli.Invocation) error {
	if len(inv.Args) == 0 {
		return exit.Usagef("want a subcommand: can, explain, rules, lint or export; see acl --help")
	}
	verb, ok := aclVerbs()[inv.Args[0]]
	if !ok {
		return exit.Usagef("unknown subcommand %q: want can, explain, rules, lint or export", inv.Args[0])
	}
	fs := flag.NewFlagSet(inv.Args[0], flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	namespace, partition := fs.String("namespace", "", ""), fs.String("partition", "", "")
	run := verb(fs)
	switch err := fs.Parse(inv.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		_, err := fmt.Fprintf(inv.Stdout, "Usage: consul-ecs %s\n%s\n", aclCommand().Usage, aclHelp)
		return err
	case err != nil:
		return exit.Usagef("%s: %w", inv.Args[0], err)
	}
	if i := slices.IndexFunc(fs.Args(), func(a string) bool { return strings.HasPrefix(a, "-") && a != "-" }); i >= 0 {
		return exit.Usagef("%s: %s: flags come before other words", inv.Args[0], fs.Arg(i))
	}
	if err := errors.Join(community("-namespace", *namespace), community("-partition", *partition)); err != nil {
		return err
	}
	return run(ctx, inv, fs.Args())
}

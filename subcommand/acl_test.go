package subcommand

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// Tokens of the ACL tests, by their accessors and secrets.
const (
	opsAccessor    = "0b0b0b01-0000-4000-8000-000000000001"
	opsSecret      = "5ec5ec01-0000-4000-8000-000000000001"
	goneAccessor   = "0b0b0b02-0000-4000-8000-000000000002"
	goneSecret     = "5ec5ec02-0000-4000-8000-000000000002"
	crowdSecret    = "5ec5ec03-0000-4000-8000-000000000003"
	absentAccessor = "11111111-0000-4000-8000-000000000001"
)

// aclWorld is a Consul server with ACLs, files, and a caller.
type aclWorld struct {
	*testkit.Consul
	admin *api.Client
	dir   string
}

// asked is one call of consul-ecs acl.
type asked struct {
	token, address, stdin string
	env                   []string
	args                  string // split at spaces
}

type reply struct {
	out, err string
	code     int
}

// TestACL asks a real Consul by the real command line.
func TestACL(t *testing.T) {
	t.Parallel()
	w := newACLWorld(t)
	for name, test := range map[string]func(*testing.T, *aclWorld){
		"subjects": aclSubjects, "unknown": aclUnknown, "refused": aclRefused, "usage": aclUsage, "queries": aclQueries,
		"explain": aclExplains,
		"engines": aclEngines, "disagree": aclDisagrees, "no endpoint": aclWithoutEndpoint,
		"unreachable": aclUnreachable, "disabled": aclDisabled,
		"jwt": aclJWT, "export": aclExports, "offline": aclOffline, "lint": aclLints, "rules": aclPrintsRules,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

func newACLWorld(t *testing.T) *aclWorld {
	t.Helper()
	c, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	w := &aclWorld{Consul: c, dir: t.TempDir()}
	if w.admin, err = consulutil.NewClient(consulutil.Options{Address: c.HTTPAddr, Token: c.Token}); err != nil {
		t.Fatal(err)
	}
	acl := w.admin.ACL()
	for _, p := range []api.ACLPolicy{
		{Name: "ops",
			Rules: "# what operations do\nkey_prefix \"app/\" {\n  policy = \"write\"\n}\nservice_prefix \"\" {\n  " +
				"policy = \"write\"\n}\n"},
		{Name: "freeze", Rules: "# until the audit\nservice \"web\" { policy = \"deny\" }\n"},
		{Name: "eu-only", Rules: `acl = "write"`, Datacenters: []string{"dc1"}},
	} {
		_, _, err := acl.PolicyCreate(&p, nil)
		err = errors.Join(err)
		if err != nil {
			t.Fatal(err)
		}
	}
	// A policy may name only datacenters that exist, and the file of another
	// server may have any: see aclExports.
	_, _, err = acl.RoleCreate(&api.ACLRole{Name: "ops", Policies: []*api.ACLLink{{Name: "ops"}, {Name: "freeze"}}},
		nil)
	tokens := []api.ACLToken{
		{AccessorID: opsAccessor, SecretID: opsSecret, Roles: []*api.ACLLink{{Name: "ops"}},
			ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: "web"}}},
		{AccessorID: goneAccessor, SecretID: goneSecret, Policies: []*api.ACLLink{{Name: "ops"}}},
		{SecretID: crowdSecret, Policies: crowd(t, acl)},
	}
	for _, token := range tokens {
		_, _, e := acl.TokenCreate(&token, nil)
		err = errors.Join(err, e)
	}
	_, e := acl.TokenDelete(goneAccessor, nil)
	if err := errors.Join(err, e); err != nil {
		t.Fatal(err)
	}
	w.file(t, "ops.token", opsSecret+"\n")
	w.file(t, "gone.token", goneSecret)
	return w
}

// crowd makes a hundred policies and the one that grants everything.
func crowd(t *testing.T, acl *api.ACL) []*api.ACLLink {
	t.Helper()
	links := []*api.ACLLink{{Name: "global-management"}}
	for i := range 100 {
		p, _, err := acl.PolicyCreate(&api.ACLPolicy{Name: fmt.Sprintf("team-%02d", i),
			Rules: fmt.Sprintf("# team %d\nservice_prefix \"\" { policy = \"read\" }", i)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, &api.ACLLink{ID: p.ID})
	}
	return links
}

// file writes one into the fixture's directory and returns its path.
func (w *aclWorld) file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ask runs the command line; @ stands for the fixture's directory.
func (w *aclWorld) ask(t *testing.T, a asked) reply {
	t.Helper()
	args := testkit.SelfArgs("consul-ecs",
		append([]string{"acl"}, strings.Fields(strings.ReplaceAll(a.args, "@", w.dir+"/"))...)...)
	if a.address == "" {
		a.address = w.HTTPAddr
	}
	var out, stderr bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(a.stdin), &out, &stderr
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "CONSUL_HTTP_ADDR="+a.address,
		"CONSUL_HTTP_TOKEN="+a.token)
	cmd.Env = append(cmd.Env, a.env...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	clean := strings.NewReplacer(w.dir+"/", "@", w.HTTPAddr, "SERVER")
	return reply{clean.Replace(out.String()), clean.Replace(stderr.String()), cmd.ProcessState.ExitCode()}
}

// want asks and compares all that comes back.
func (w *aclWorld) want(t *testing.T, a asked, want reply) {
	t.Helper()
	if diff := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", w.ask(t, a))); diff != "" {
		t.Errorf("acl %s (-want +got):\n%s", a.args, diff)
	}
}

const (
	freezeSource = `token 0b0b0b01… → role "ops" → policy "freeze" line 2`
	opsKeys      = `token 0b0b0b01… → role "ops" → policy "ops" line 2`
	denied       = `deny     service:web write  by service "web" = deny, ` + freezeSource + "\n"
	byNoRule     = "no rule applies: the default policy is deny"
	hidden       = `could not be read:
  token 0b0b0b01… → role "ops": it is not readable with this token: a token with acl:read can read it
`
	hiddenWeb = `unknown  service:web write  rules that could not be read may decide otherwise; so far service "web" = write, token 0b0b0b01… → service identity "web"` + "\n"
)

// aclSubjects checks that the flags name the subject, and that CONSUL_HTTP_TOKEN reads.
func aclSubjects(t *testing.T, w *aclWorld) {
	admin := w.Token
	for _, c := range []struct {
		a    asked
		want reply
	}{
		{asked{token: admin, args: "can -accessor " + opsAccessor + " service:web write"}, reply{denied, "", 2}},
		{asked{token: admin, args: "can -token-file @ops.token service:web write"}, reply{denied, "", 2}},
		{asked{token: admin, args: "can -token-file @ops.token key:app/x write key:app/ list"}, reply{
			"allow    key:app/x write  by key_prefix \"app/\" = write, " + opsKeys +
				"\nallow    key:app/ list    by key_prefix \"app/\" = write, " + opsKeys + "\n", "", 0}},
		{asked{token: admin, args: "can -accessor " + opsAccessor + " acl read node:n read"}, reply{
			"deny     acl read     " + byNoRule +
				"\nallow    node:n read  by node_prefix \"\" = read, token 0b0b0b01… → service identity \"web\"\n", "",
			2}},
		{asked{token: admin, args: "can operator write"},
			reply{out: "allow    operator write  by operator = write, token ADMIN → policy \"global-management\" line " +
				"16\n"}},
		// Without a token the anonymous one applies, and the output names it.
		{asked{args: "can service:web read"}, reply{"deny     service:web read  " + byNoRule + "\n",
			"note: CONSUL_HTTP_TOKEN is not set: these are the rights of requests without a token\n", 2}},
		{asked{token: admin, args: "can -accessor 00000000-0000-0000-0000-000000000002 service:web read"},
			reply{"deny     service:web read  " + byNoRule + "\n", "", 2}},
	} {
		got := w.ask(t, c.a)
		if before, after, ok := strings.Cut(got.out, "token "); ok &&
			strings.HasPrefix(c.a.args, "can operator") { // the server made it
			_, after, _ = strings.Cut(after, " ")
			got.out = before + "token ADMIN " + after
		}
		if diff := cmp.Diff(fmt.Sprintf("%+v", c.want), fmt.Sprintf("%+v", got)); diff != "" {
			t.Errorf("acl %s (-want +got):\n%s", c.a.args, diff)
		}
	}
}

// aclUnknown checks that what could not be read makes an answer unknown, unless it could change nothing.
func aclUnknown(t *testing.T, w *aclWorld) {
	w.want(t, asked{token: opsSecret, args: "can service:web write"},
		reply{hiddenWeb, hidden + "-engine both asks the server about the token as well\n", 3})
	w.want(t, asked{args: "can -token-file @ops.token service:web write"},
		reply{hiddenWeb, hidden + "-engine both asks the server about the token as well\n", 3})
	w.want(t, asked{token: opsSecret, args: "can -json service:web write"}, reply{
		`{"resource":"service","segment":"web","access":"write","decision":"unknown","rule":"service \"web\" = write","source":"token 0b0b0b01… → service identity \"web\"",` +
			`"why":"rules that could not be read may decide otherwise","missing":["token 0b0b0b01… → role \"ops\": it is not readable with this token: a token with acl:read can read it"]}` + "\n", "", 3})
	w.want(t, asked{token: opsSecret, args: "can -accessor 00000000-0000-0000-0000-000000000002 service:web write"},
		reply{
			"unknown  service:web write  no rule that could be read applies, and others could not be read\n",
			"could not be read:\n  anonymous token: it is not readable with this token: a token with acl:read can " +
				"read it\n", 3})
	// The reading token is gone: that says nothing of the subject.
	w.want(t, asked{token: goneSecret, args: "can -accessor " + opsAccessor + " service:web write"}, reply{
		"unknown  service:web write  no rule that could be read applies, and others could not be read\n",
		"could not be read:\n  token 0b0b0b01…: the token that reads, of CONSUL_HTTP_TOKEN or of a flag, is unknown " +
			"to the server (wrong, deleted or expired)\n", 3})
	w.want(t, asked{token: opsSecret, args: "can -login jwt service:web write"}, reply{
		"unknown  service:web write  no rule that could be read applies, and others could not be read\n",
		"could not be read:\n  login by auth method \"jwt\": it is not readable with this token: a token with " +
			"acl:read can read it\n", 3})
	w.want(t, asked{token: opsSecret, args: "rules"},
		reply{`# MISSING token 0b0b0b01… → role "ops": it is not readable with this token: a token with acl:read can read it

# token 0b0b0b01… → service identity "web"
node_prefix "" { policy = "read" }

# token 0b0b0b01… → service identity "web"
service_prefix "" { policy = "read" }

# token 0b0b0b01… → service identity "web"
service "web" { policy = "write" }

# token 0b0b0b01… → service identity "web"
service "web-sidecar-proxy" { policy = "write" }
`, "consul-ecs acl: token 0b0b0b01… → role \"ops\": it is not readable with this token: a token with acl:read can " +
			"read it\n", 3})
}

// aclRefused checks that a token that does not exist has no rights.
func aclRefused(t *testing.T, w *aclWorld) {
	const unknown = "unknown to the server (wrong, deleted or expired)"
	for args, source := range map[string]string{
		"can -accessor " + goneAccessor + " service:web read":         "token 0b0b0b02…",
		"can -accessor " + absentAccessor + " service:web read":       "token 11111111…",
		"can -token-file @gone.token service:web read":                "the token",
		"can -engine server -token-file @gone.token service:web read": "the token",
		"can -engine both -token-file @gone.token service:web read":   "the token",
	} {
		w.want(t, asked{token: w.Token, args: args},
			reply{"deny     service:web read  " + source + ": " + unknown + "\n", "", 2})
	}
	w.want(t, asked{token: goneSecret, args: "can service:web read"},
		reply{"deny     service:web read  the token: " + unknown + "\n", "", 2})
	w.want(t, asked{token: goneSecret, args: "rules"}, reply{"", "consul-ecs acl: the token: " + unknown + "\n", 2})
}

// aclUsage checks that every mistake in a call is a usage error that says what to do.
func aclUsage(t *testing.T, w *aclWorld) {
	w.file(t, "bad.json", `{"version":9}`)
	for args, want := range map[string]string{
		"":    "want a subcommand: can, explain, rules, lint or export",
		"may": `unknown subcommand "may": want can, explain, rules, lint or export`,
		"can": "no question: want pairs of RESOURCE[:SEGMENT] and ACCESS, such as " +
			"service:web write",
		"can service:web":                 `"service:web" has no access`,
		"can service:web write -json":     `-json: flags come before other words`,
		"can -x":                          "can: flag provided but not defined: -x",
		"can srvice:web write acl list":   "did you mean \"service\"?\naccess \"list\" to acl: want one of read, write",
		"can -engine both acl":            `"acl" has no access`,
		"can -engine x acl read":          `-engine "x": want resolver, server or both`,
		"explain -engine server acl read": "-engine server: the server does not explain; use both",
		"can -engine both -accessor " + opsAccessor +
			" acl read": "-engine both: the server judges tokens that it is shown: use -token-file or CONSUL_HTTP_TOKEN",
		"can -accessor 0b0b acl read": "-accessor 0b0b: want all 36 characters " +
			"of the accessor, as consul acl token list shows it",
		"can -accessor " + opsAccessor +
			" -token-file @ops.token acl read": "-token-file and -accessor name two tokens: give one",
		"can -from @bad.json acl read": "-from needs a subject: -accessor, " +
			"-login or -policy-file",
		"can -from @bad.json -token-file @ops.token acl read": "-from has no secrets to find " +
			"-token-file by: give -accessor",
		"can -from @bad.json -accessor " + opsAccessor +
			" acl read": "-from @bad.json: read the export: version 9: want 1",
		"can -from @none -accessor " + opsAccessor +
			" acl read": "-from: open @none: no such file or directory",
		"can -token-file @none acl read": "-token-file: read token file: open " +
			"@none: no such file or directory",
		"can -policy-file @none acl read": "-policy-file: open @none: no such file " +
			"or directory",
		"can -queries @none": "-queries: open @none: no such file or " +
			"directory",
		"can -entity-tag a=b acl read": "-entity-..., -account-id, -claim and " +
			"-group belong to -login METHOD",
		"can -login m -entity-tag ab acl read":                  "want key=value",
		"can -login m -entity-tag a=b -entity-tag a=c acl read": "-entity-tag a: an entity has a tag once",
		"can -default-policy maybe acl read":                    `-default-policy "maybe": want allow or deny`,
		"can -namespace team acl read": "-namespace team: namespaces need Consul " +
			"Enterprise, whose rules are not known here",
		"export -partition p": "-partition p: namespaces need Consul " +
			"Enterprise",
		"rules x":    `rules: unexpected word "x"`,
		"export x":   `export: unexpected word "x": it writes to standard output`,
		"lint @none": "open @none: no such file or directory",
		"lint -from @bad.json x.hcl": "lint: x.hcl and -from: give files or an " +
			"export",
	} {
		got := w.ask(t, asked{token: w.Token, args: args})
		if got.code != 1 || got.out != "" || !strings.HasPrefix(got.err, "consul-ecs acl: ") ||
			!strings.Contains(got.err, want) {
			t.Errorf("acl %s: %+v, want %s", args, got, want)
		}
	}
	got := w.ask(t, asked{token: w.Token, args: "can acl read", env: []string{"CONSUL_NAMESPACE=team"}})
	if got.code != 1 || !strings.Contains(got.err, "CONSUL_NAMESPACE team: namespaces need Consul Enterprise") {
		t.Errorf("a namespace of the environment: %+v", got)
	}
	for _, args := range []string{"can acl read", "can -engine server acl read", "can -engine both acl read", "rules",
		"lint", "export"} {
		got := w.ask(t, asked{args: args, env: []string{"CONSUL_HTTP_TOKEN_FILE=/nonexistent"}})
		if want := "consul-ecs acl: read token file: open /nonexistent: "; got.code != 1 ||
			!strings.HasPrefix(got.err, want) {
			t.Errorf("acl %s without its token file: %+v, want %s", args, got, want)
		}
	}
	if got := w.ask(t, asked{token: w.Token,
		args: "can -namespace default -accessor " + opsAccessor + " service:web write"}); got.code != 2 ||
		got.out != denied {
		t.Errorf("the default namespace: %+v", got)
	}
	for _, args := range []string{"--help", "can --help"} {
		if got := w.ask(t, asked{args: args}); got.code != 0 || !strings.HasPrefix(got.out, "Usage: consul-ecs acl ") {
			t.Errorf("acl %s: %+v", args, got)
		}
	}
}

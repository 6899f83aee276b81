package subcommand

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func aclQueries(t *testing.T, w *aclWorld) {
	const text = "# two questions and a half\n\nservice:web write\n  key:with a space read  \n"
	file := w.file(t, "queries", text)
	for name, a := range map[string]asked{
		"file": {args: "-queries " + file}, "stdin": {args: "-queries -", stdin: text},
		"both": {args: "-queries - key:with read", stdin: text},
	} {
		a.token, a.args = w.Token, "can -accessor "+opsAccessor+" "+a.args
		got := w.ask(t, a)
		lines := strings.Split(strings.TrimSuffix(got.out, "\n"), "\n")
		if name == "both" { // those of the command line come first
			if !strings.HasPrefix(lines[0], "deny     key:with read ") {
				t.Errorf("first line: %s", lines[0])
			}
			lines = lines[1:]
		}
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "deny     service:web write      by service") ||
			!strings.HasPrefix(lines[1], "deny     key:with a space read  no rule") || got.code != 2 || got.err != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	got := w.ask(t, asked{token: w.Token, stdin: "service:web\nservice:web wirte\n\nacl read\nsrvice:a read\n",
		args: "can -queries -"})
	wantErr := `consul-ecs acl: -queries line 2: access "wirte" to service: want one of read, write
-queries line 5: resource "srvice": want one of acl, agent, event, intention, key, keyring, mesh, node, operator, peering, query, service, session; did you mean "service"?
-queries line 1: "service:web" has no access: want RESOURCE[:SEGMENT] ACCESS
`
	if got.code != 1 || got.out != "" || got.err != wantErr {
		t.Errorf("all mistakes at once: %+v", got)
	}

	got = w.ask(t, asked{token: w.Token, stdin: "service:web write\nkey:a/b list\nacl read\n",
		args: "can -json -accessor " + opsAccessor + " -queries -"})
	var decisions []string
	for line := range strings.Lines(got.out) {
		var a struct{ Resource, Segment, Access, Decision string }
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		decisions = append(decisions, fmt.Sprintf("%s|%s|%s|%s", a.Resource, a.Segment, a.Access, a.Decision))
	}
	if strings.Join(decisions, " ") != "service|web|write|deny key|a/b|list|deny acl||read|deny" {
		t.Errorf("got %v", decisions)
	}
}

func aclExplains(t *testing.T, w *aclWorld) {
	w.want(t, asked{token: w.Token, args: "explain -accessor " + opsAccessor + " service:web write acl write"},
		reply{`service:web write  DENY
  wins    service "web" = deny
          ` + freezeSource + `
  loses   service "web" = write: deny outranks write
          token 0b0b0b01… → service identity "web"
  loses   service_prefix "" = write: an exact rule exists
          token 0b0b0b01… → role "ops" → policy "ops" line 5
  loses   service_prefix "" = read: an exact rule exists
          token 0b0b0b01… → service identity "web"
  to allow
          remove  service "web" = deny, ` + freezeSource + `

acl write  DENY
  because ` + byNoRule + `
  to allow
          add     acl = "write"
`, "", 2})
	// A hundred policies are a few lines.
	got := w.ask(t, asked{token: crowdSecret, args: "explain service:web write"})
	if n := strings.Count(got.out, "\n"); got.code != 0 || n != 11 ||
		!strings.Contains(got.out, "          and 96 more, which -json lists\n") {
		t.Errorf("%d lines: %s", n, got.out)
	}
	got = w.ask(t, asked{token: crowdSecret, args: "explain -json service:web write"})
	var x struct {
		Decision, Rule string
		Line           int
		Losers         []struct{ Rule, Source, Why string }
		Change         struct{ Add string }
	}
	if err := json.Unmarshal([]byte(got.out), &x); err != nil || x.Decision != "allow" || len(x.Losers) != 100 ||
		x.Change.Add != `service "web" { policy = "deny" }` || x.Line != 22 {
		t.Errorf("%v: %+v", err, x)
	}
	w.want(t, asked{token: crowdSecret, args: "explain acl write"}, reply{out: strings.ReplaceAll(`acl write  ALLOW
  wins    acl = write
          token CROWD → policy "global-management" line 2
  note    this is equivalent to root: its holder can make a management token
  to deny
          add     acl = "deny"
`, "CROWD", crowdToken(t, w))})
}

// crowdToken returns the crowd's token as sources show it.
func crowdToken(t *testing.T, w *aclWorld) string {
	t.Helper()
	list, _, err := w.admin.ACL().TokenList(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range list {
		if token.SecretID == crowdSecret {
			return token.AccessorID[:8] + "…"
		}
	}
	t.Fatal("no crowd")
	return ""
}

// aclOffline checks answers from policies in files, without any server.
func aclOffline(t *testing.T, w *aclWorld) {
	w.file(t, "mine.hcl", "# mine\nkey_prefix \"app/\" { policy = \"read\" }\n")
	w.file(t, "theirs.json", `{"key_prefix":{"app/x":{"policy":"write"}}}`)
	w.file(t, "broken.hcl", `key "a" { policy = "all" }`)
	const nowhere = "127.0.0.1:1"
	mine := "by key_prefix \"app/\" = read, policy \"@mine.hcl\" line 2\n"
	for _, c := range []struct {
		args string
		want reply
	}{
		{"can -policy-file @mine.hcl key:app/a read", reply{"allow    key:app/a read  " + mine, "", 0}},
		{"can -policy-file @mine.hcl -policy-file @theirs.json key:app/a write key:app/xa write", reply{
			"deny     key:app/a write   " + mine +
				"allow    key:app/xa write  by key_prefix \"app/x\" = write, policy \"@theirs.json\"\n", "", 2}},
		{"can -policy-file @mine.hcl acl read", reply{"deny     acl read  " + byNoRule + "\n", "", 2}},
		{"can -policy-file @mine.hcl -default-policy allow operator write",
			reply{"allow    operator write  no rule applies: the default policy is allow\n", "", 0}},
		{"can -policy-file @mine.hcl -policy-file @broken.hcl key:app/a read", reply{
			"",
			"consul-ecs acl: -policy-file @broken.hcl: line 1: key \"a\": policy \"all\": want deny, read, list or " +
				"write\n", 1}},
	} {
		w.want(t, asked{address: nowhere, args: c.args}, c.want)
	}
	// With a server's role beside it, the file is one policy of many.
	w.want(t, asked{token: w.Token, args: "can -policy-file @mine.hcl -accessor " + opsAccessor + " key:app/a write"},
		reply{
			"allow    key:app/a write  by key_prefix \"app/\" = write, " + opsKeys + "\n", "", 0})
}

// aclExports checks that an export answers as the server did, without it.
func aclExports(t *testing.T, w *aclWorld) {
	exported := w.ask(t, asked{token: w.Token, args: "export"})
	if exported.code != 0 || exported.err != "" || strings.Contains(exported.out, opsSecret) ||
		strings.Contains(exported.out, w.Token) {
		t.Fatalf("%d, %s; a secret: %v", exported.code, exported.err, strings.Contains(exported.out, opsSecret))
	}
	w.file(t, "export.json", exported.out)
	const nowhere = "127.0.0.1:1"
	w.want(t, asked{address: nowhere, args: "can -from @export.json -accessor " + opsAccessor + " service:web write"},
		reply{denied, "", 2})
	w.want(t, asked{address: nowhere, args: "can -from @export.json -accessor " + absentAccessor +
		" service:web write"},
		reply{"deny     service:web write  token 11111111…: unknown to the server (wrong, deleted or expired)\n", "",
			2})
	w.want(t, asked{address: nowhere, args: "can -from @export.json -login none acl read"}, reply{
		"unknown  acl read  no rule that could be read applies, and others could not be read\n",
		"could not be read:\n  login by auth method \"none\": there is no such auth method\n", 3})
	for _, args := range []string{"explain -accessor " + opsAccessor + " key:app/ list",
		"rules -accessor " + opsAccessor, "rules -json -accessor " + opsAccessor} {
		word, rest, _ := strings.Cut(args, " ")
		server, file := w.ask(t, asked{token: w.Token, args: args}),
			w.ask(t, asked{address: nowhere, args: word + " -from @export.json " + rest})
		if server != file || server.out == "" {
			t.Errorf("acl %s: %+v from the server, %+v from the file", args, server, file)
		}
	}
	// A token that has expired since, and another datacenter.
	old := strings.Replace(exported.out, `"accessor": "`+opsAccessor+`",`,
		`"accessor": "`+opsAccessor+`", "expires": "2020-01-01T00:00:00Z",`, 1)
	w.file(t, "old.json", old)
	w.want(t, asked{address: nowhere, args: "can -from @old.json -accessor " + opsAccessor + " service:web write"},
		reply{"deny     service:web write  token 0b0b0b01…: it has expired\n", "", 2})
	w.file(t, "eu.json",
		`{"version":1,"datacenter":"dc2","policies":[{"id":"p","name":"eu","rules":"acl = \"read\"","datacenters":["dc2"]}],"tokens":[{"accessor":"`+opsAccessor+`","policies":[{"id":"p"}]}]}`)
	w.want(t, asked{address: nowhere, args: "can -from @eu.json -accessor " + opsAccessor + " acl read"},
		reply{"allow    acl read  by acl = read, token 0b0b0b01… → policy \"eu\" line 1\n", "", 0})
	w.want(t, asked{address: nowhere, args: "explain -from @eu.json -datacenter dc1 -accessor " + opsAccessor +
		" acl read"}, reply{`acl read  UNKNOWN
  because no rule applies, and the default policy is not known: a token with acl:read can read it
  note    token 0b0b0b01… → policy "eu": it applies in dc2 only, and this is dc1
  to allow
          add     acl = "read"
`, "", 3})
	w.want(t, asked{token: opsSecret, args: "export"},
		reply{"",
			"consul-ecs acl: export policies: it is not readable with this token: a token with acl:read can read it\n",
			3})
}

func aclPrintsRules(t *testing.T, w *aclWorld) {
	got := w.ask(t, asked{token: w.Token, args: "rules -accessor " + opsAccessor})
	want := `# ` + opsKeys + `
key_prefix "app/" { policy = "write" }

# token 0b0b0b01… → service identity "web"
node_prefix "" { policy = "read" }

# token 0b0b0b01… → role "ops" → policy "ops" line 5
# token 0b0b0b01… → service identity "web" (sets read)
service_prefix "" { policy = "write" }

# ` + freezeSource + `
# token 0b0b0b01… → service identity "web" (sets write)
service "web" { policy = "deny" }

# token 0b0b0b01… → service identity "web"
service "web-sidecar-proxy" { policy = "write" }
`
	if got.out != want || got.code != 0 {
		t.Errorf("got %+v", got)
	}
	// What was printed is a policy that grants the same.
	w.file(t, "merged.hcl", got.out)
	w.want(t, asked{address: "127.0.0.1:1", args: "can -policy-file @merged.hcl key:app/a write service:api write"},
		reply{
			"allow    key:app/a write    by key_prefix \"app/\" = write, policy \"@merged.hcl\" line 2\nallow    " +
				"service:api write  by service_prefix \"\" = write, policy \"@merged.hcl\" line 9\n", "", 0})
}

func aclLints(t *testing.T, w *aclWorld) {
	w.file(t, "lint.hcl", "servce \"web\" { policy = \"write\" }\nacl = \"write\"\n")
	w.file(t, "clean.hcl", "service \"web\" { policy = \"write\" }\n")
	typo := "servce is ignored: there is no such resource; did you mean \"service\"?"
	root := "acl = \"write\" is equivalent to root: its holder can make a management token"
	w.want(t, asked{args: "lint @lint.hcl @clean.hcl"},
		reply{"@lint.hcl:1: inert: " + typo + "\n@lint.hcl:2: root: " + root + "\n", "", 2})
	w.want(t, asked{args: "lint @clean.hcl"}, reply{"", "", 0})
	w.want(t, asked{args: "lint -", stdin: "acl = \"write\""}, reply{"-:1: root: " + root + "\n", "", 2})
	w.want(t, asked{args: "lint -json -", stdin: "acl = \"write\""},
		reply{`{"object":"-","line":1,"code":"root","message":"acl = \"write\" is equivalent to root: its holder can make a management token"}` + "\n", "", 2})
	w.want(t, asked{args: "lint -", stdin: "acl = \"x\""},
		reply{"-:1: invalid: acl: policy \"x\": want deny, read or write\n", "", 2})
	got := w.ask(t, asked{token: w.Token, args: "lint"})
	if got.code != 2 || !strings.Contains(got.out, "policy eu-only:1: root: "+root+"\n") ||
		strings.Contains(got.out, "global-management:") {
		t.Errorf("all of the server: %+v", got)
	}
}

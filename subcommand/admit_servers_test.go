package subcommand

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// says makes the server answer every question of authorize so.
func says(allow bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != authorizePath {
			return false
		}
		var asked []map[string]any
		_ = json.NewDecoder(r.Body).Decode(&asked)
		for _, a := range asked {
			a["Allow"] = allow
		}
		_ = json.NewEncoder(w).Encode(asked)
		return true
	}
}

func permitsNoDisagreement(t *testing.T, w *admitWorld) {
	reader := w.file(t, w.Token)
	generous, strict := w.way(t, says(true)).URL, w.way(t, says(false)).URL
	bad, good := w.token(t, `node "x" { policy = "read" }`), w.token(t, webRules)
	admitCase{webTask(), []string{"-consul-addr", generous, "-token-file", bad, "-resolver-token-file", reader}, 3,
		[]string{"ACL-DISAGREE", "ACL-DISAGREE"}, nil}.run(t, w)
	admitCase{webTask(), []string{"-consul-addr", generous, "-token-file", bad}, 0, nil, nil}.run(t,
		w) // its rules may not be read, so nothing is sure
	admitCase{webTask(), []string{"-consul-addr", strict, "-token-file", good, "-resolver-token-file", reader}, 2,
		[]string{"ACL-DENIED", "ACL-DENIED"}, nil}.run(t, w)
}

func permitsOverBadNetworks(t *testing.T, w *admitWorld) {
	token := w.token(t, webRules)
	admitCase{webTask(), []string{"-consul-addr", testkit.ClosedAddress(t), "-token-file", token}, 3,
		[]string{"ACL-UNKNOWN"}, []string{"connection refused"}}.run(t, w)
	failures := 0
	failing := func(times int) *way {
		return w.way(t, func(rw http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			if failures++; failures <= times {
				http.Error(rw, "No cluster leader", http.StatusInternalServerError)
				return true
			}
			http.Error(rw, "Permission denied", http.StatusForbidden)
			return true
		})
	}
	through := failing(1000)
	admitCase{webTask(), []string{"-consul-addr", through.URL, "-token-file", token}, 3, []string{"ACL-UNKNOWN"},
		[]string{"No cluster leader"}}.run(t, w)
	if n := len(through.requests()); n != 3 {
		t.Errorf("%d requests, want 3 attempts", n)
	}
	failures, through = 0, failing(1)
	admitCase{webTask(), []string{"-check", "server", "-consul-addr", through.URL, "-token-file", token}, 3,
		[]string{"ACL-UNKNOWN"}, []string{"Permission denied"}}.run(t, w)
	if n := len(through.requests()); n != 2 {
		t.Errorf("%d requests, want none after a refusal", n)
	}
}

func permitsWithoutEndpoint(t *testing.T, w *admitWorld) {
	through := w.way(t, func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == authorizePath {
			http.Error(rw, "Invalid URL path: not a recognized HTTP API endpoint", http.StatusNotFound)
		}
		return r.URL.Path == authorizePath
	})
	good, reader := w.token(t, webRules), w.file(t, w.Token)
	admitCase{webTask(), []string{"-consul-addr", through.URL, "-token-file", good, "-resolver-token-file", reader}, 0,
		nil, nil}.run(t, w)
	admitCase{webTask(), []string{"-consul-addr", through.URL, "-token-file", good}, 3,
		[]string{"ACL-UNKNOWN", "ACL-UNKNOWN"}, nil}.run(t, w)
	admitCase{webTask(), []string{"-consul-addr", through.URL, "-token-file", good, "-check", "server"}, 3,
		[]string{"ACL-UNKNOWN"}, []string{"the server has no /v1/internal/acl/authorize"}}.run(t, w)
}

func permitsNoEscalation(t *testing.T, w *admitWorld) {
	reader := w.file(t, w.Token)
	wanted := w.policy(t, `service_prefix "d" { policy = "write" }`)
	owner := w.token(t, webRules+`service_prefix "" { policy = "write" } service "db" { policy = "read" }`)
	task := webTask("policies", wanted)
	admitCase{task, []string{"-token-file", owner, "-resolver-token-file", reader}, 2, []string{"ACL-ESCALATE"},
		[]string{
			`service write of service "db", by service_prefix "d" = write of policy "` + wanted,
			`the owner has service "db" = read by token `,
		}}.run(t, w)
	admitCase{task, []string{"-token-file", w.token(t, `service_prefix "" { policy = "write" }`),
		"-resolver-token-file", reader}, 0, nil, nil}.run(t, w)
	admitCase{task, []string{"-token-file", reader}, 0, nil, nil}.run(t, w) // acl:write can make any token
	admitCase{webTask("policies", wanted, "mesh-inject", "false"),
		[]string{"-token-file", owner, "-resolver-token-file", reader}, 2, []string{"ACL-ESCALATE"}, nil}.run(t, w)
	admitCase{webTask("policies", "not-there"), []string{"-token-file", owner, "-resolver-token-file", reader}, 2,
		[]string{"ACL-ESCALATE"}, []string{`policy "not-there": it does not exist`}}.run(t, w)
	far := strings.ToLower(rand.Text())
	if _, _, err := w.acl.PolicyCreate(&api.ACLPolicy{Name: far, Rules: `acl = "write" operator = "write"`,
		Datacenters: []string{"dc2"}}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{far, strings.ToUpper(far)} {
		admitCase{webTask("policies", name), []string{"-token-file", owner, "-resolver-token-file", reader}, 2,
			slices.Repeat([]string{"ACL-ESCALATE"}, 4), []string{`acl write of acl`, `in dc2`}}.run(t, w)
	}
	code, _, stderr := callAdmit(task, "-config", admitMesh(t), "-consul-addr", w.HTTPAddr, "-token-file", owner,
		"-") // nothing can be read
	if code != 2 || !strings.Contains(stderr, "ACL-ESCALATE") {
		t.Errorf("exit %d, stderr %s", code, stderr)
	}
}

// permitsWithItsPolicy checks that the policy of the report grants what was missing, on the real server.
func permitsWithItsPolicy(t *testing.T, w *admitWorld) {
	reader := w.file(t, w.Token)
	task := webTask("upstreams", "api:1234", "kv-prefixes", "app/,cfg/:list")
	for _, rules := range []string{
		"", `service_prefix "" { policy = "read" }`,
		`service_prefix "web" { policy = "deny" } key_prefix "" { policy = "deny" }`,
		`key_prefix "cfg/" { policy = "read" } key "app/" { policy = "READ" }`,
	} {
		base := w.policy(t, rules)
		secret := w.create(t, &api.ACLToken{Policies: []*api.ACLLink{{Name: base}}})
		_, stdout, _ := callAdmit(task, "-config", admitMesh(t), "-consul-addr", w.HTTPAddr, "-token-file",
			w.file(t, secret), "-resolver-token-file", reader, "-output", "report", "-")
		var report admitReport
		if err := json.Unmarshal([]byte(stdout), &report); err != nil {
			t.Fatal(err)
		}
		if report.Admitted || report.Permissions.Policy == "" {
			t.Errorf("rules %q: admitted %v, policy %q", rules, report.Admitted, report.Permissions.Policy)
		}
		more := w.create(t, &api.ACLToken{Policies: []*api.ACLLink{{Name: base},
			{Name: w.policy(t, report.Permissions.Policy)}}})
		admitCase{task, []string{"-token-file", w.file(t, more), "-resolver-token-file", reader}, 0, nil, nil}.run(t, w)
	}
}

// permitsNoLeak checks that the token is nowhere in what the command writes.
func permitsNoLeak(t *testing.T, w *admitWorld) {
	secret := w.create(t, &api.ACLToken{ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: "web"}}})
	leaks := []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))[:40],
		base64.StdEncoding.EncodeToString([]byte("a" + secret))[4:40],
		base64.StdEncoding.EncodeToString([]byte("ab" + secret))[4:40]}
	stripped := plainTask(withEntryPoint + `, "environment": [{"name": "CONSUL_HTTP_TOKEN", "value": "` + secret +
		`"}], "dockerLabels": {"consul.hashicorp.com/service-name": "web"}`)
	encoded := plainTask(withEntryPoint + `, "environment": [{"name": "HEADER", "value": "` +
		base64.StdEncoding.EncodeToString([]byte("x:"+secret)) + `"}]`)
	token := w.file(t, secret)
	for _, c := range []struct {
		task  string
		words []string
		code  int
	}{
		{stripped, nil, 0},
		{stripped, []string{"-diff"}, 0},
		{stripped, []string{"-diff=patch"}, 0},
		{stripped, []string{"-output", "report"}, 0},
		{stripped, []string{"-strict"}, 2},
		{stripped, []string{"-consul-addr", testkit.ClosedAddress(t)}, 3},
		{encoded, nil, 2},
		{encoded, []string{"-output", "report"}, 2},
		{webTask("upstreams", secret), nil, 2},
		{webTask("upstreams", secret+":1"), []string{"-output", "report"}, 2},
		{`{"family": ["` + secret + `"]}`, nil, 1},
		{`{"containerDefinitions": "` + secret + `"}`, nil, 1},
	} {
		words := append([]string{"-config", admitMesh(t), "-consul-addr", w.HTTPAddr, "-token-file", token},
			append(c.words, "-")...)
		code, stdout, stderr := callAdmit(c.task, words...)
		if code != c.code || stdout+stderr == "" {
			t.Errorf("%q: exit %d, want %d: %s", c.words, code, c.code, stderr)
		}
		for _, leak := range leaks {
			if strings.Contains(stdout+stderr, leak) {
				t.Errorf("%q: the output has %s:\n%s\n%s", c.words, leak, stdout, stderr)
			}
		}
	}
	_, diff, _ := callAdmit(stripped, "-config", admitMesh(t), "-consul-addr", w.HTTPAddr, "-token-file", token,
		"-diff", "-")
	if want := "-          \"value\": \"<redacted>\""; !strings.Contains(diff, want) {
		t.Errorf("the diff does not show what was removed:\n%s", diff)
	}
}

// permitsUnnamed checks that names that are known at deployment only are reported as not checked.
func permitsUnnamed(t *testing.T, w *admitWorld) {
	list := `[{"name": "app", "image": "app", "entryPoint": ["/app"], "portMappings": [{"containerPort": 80}]}]`
	admitCase{list, []string{"-token-file", w.token(t, ""), "-check", "server"}, 0,
		[]string{"ACL-UNNAMED", "ADM-LAUNCH", "ADM-VOLUME-TASK"}, nil}.run(t, w)
	wrong := strings.Replace(webTask(), `service-name": "web"`, `service-name": "-"`, 1)
	admitCase{wrong, []string{"-token-file", w.token(t, ""), "-check", "server"}, 2, []string{"ADM-SVC-NAME"},
		nil}.run(t, w)
	named := `[{"name": "app", "image": "app", "entryPoint": ["/app"], "portMappings": [{"containerPort": 80}], "dockerLabels": {"consul.hashicorp.com/upstreams": "api:1"}}]`
	admitCase{named, []string{"-token-file", w.token(t, `service "api" { policy = "read" }`), "-check", "server"}, 0,
		[]string{"ACL-UNNAMED", "ADM-LAUNCH", "ADM-VOLUME-TASK"}, nil}.run(t, w)
}

func permitsWithoutACLs(t *testing.T, w *admitWorld) {
	open, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(open.Require(t).Stop)
	for _, engine := range []string{"server", "resolver", "both"} {
		admitCase{webTask(), []string{"-consul-addr", open.HTTPAddr, "-check", engine, "-token-file", w.file(t, "any")},
			0, []string{"ACL-DISABLED"}, nil}.run(t, w)
	}
}

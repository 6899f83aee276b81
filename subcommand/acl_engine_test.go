package subcommand

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// between makes a way to the server that changes the answers of authorize.
func (w *aclWorld) between(t *testing.T, change func(*http.Response)) string {
	t.Helper()
	target := &url.URL{Scheme: "http", Host: w.HTTPAddr}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path == "/v1/internal/acl/authorize" {
				change(r)
			}
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func replace(r *http.Response, body string) {
	r.Body = io.NopCloser(strings.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", fmt.Sprint(len(body)))
}

func aclEngines(t *testing.T, w *aclWorld) {
	for _, c := range []struct {
		a    asked
		want reply
	}{
		{asked{token: opsSecret, args: "can -engine server service:web write service:api write"}, reply{
			"deny     service:web write  decided by the server\nallow    service:api write  decided by the server\n",
			"", 2}},
		{asked{token: opsSecret, args: "can -engine server key:app/x write-prefix"},
			reply{"allow    key:app/x write-prefix  decided by the server\n", "", 0}},
		{asked{args: "can -engine server service:web read"}, reply{
			"deny     service:web read  decided by the server\n",
			"note: CONSUL_HTTP_TOKEN is not set: these are the rights of requests without a token\n", 2}},
		// What we cannot read the server knows.
		{asked{token: opsSecret, args: "can -engine both service:web write service:api write"}, reply{
			"deny     service:web write  decided by the server; by the resolver: rules that could not be read may " +
				"decide otherwise\n" +
				"allow    service:api write  decided by the server; by the resolver: rules that could not be read may " +
				"decide otherwise\n", hidden, 2}},
		// What we can read is explained, and compared.
		{asked{token: w.Token, args: "can -engine both -token-file @ops.token service:web write"},
			reply{denied, "", 2}},
		{asked{token: w.Token, args: "can -engine both -json -token-file @ops.token key:app/ list"}, reply{
			`{"resource":"key","segment":"app/","access":"list","decision":"allow","rule":"key_prefix \"app/\" = write","source":"token 0b0b0b01… → role \"ops\" → policy \"ops\"","line":2,"server":"allow"}` + "\n", "", 0}},
		{asked{token: w.Token, args: "explain -engine both -token-file @ops.token key:app/ list"},
			reply{`key:app/ list  ALLOW
  wins    key_prefix "app/" = write
          ` + opsKeys + `
  to deny
          add     key "app/" { policy = "deny" }
  server  also decides allow
`, "", 0}},
	} {
		w.want(t, c.a, c.want)
	}
	// More questions than the server takes at once.
	var questions, answers strings.Builder
	for i := range 150 {
		fmt.Fprintf(&questions, "key:app/%03d write\n", i)
		fmt.Fprintf(&answers, "allow    key:app/%03d write  by key_prefix \"app/\" = write, %s\n", i, opsKeys)
	}
	w.want(t, asked{token: w.Token, stdin: questions.String(),
		args: "can -engine both -token-file @ops.token -queries -"}, reply{answers.String(), "", 0})
}

// aclDisagrees checks the result for a server that contradicts its rules: its no is a no, its yes is not believed.
func aclDisagrees(t *testing.T, w *aclWorld) {
	liar := w.between(t, func(r *http.Response) {
		body, _ := io.ReadAll(r.Body)
		replace(r, string(bytes.ReplaceAll(bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("true"), []byte("maybe")),
			[]byte("false"), []byte("true")), []byte("maybe"), []byte("false"))))
	})
	w.want(t, asked{address: liar, token: w.Token, args: "can -engine both -token-file @ops.token service:web write"},
		reply{
			"disagree service:web write  THE RESOLVER DECIDES DENY, THE SERVER ALLOW: do not rely on either\n", "", 3})
	w.want(t, asked{address: liar, token: w.Token, args: "can -engine both -token-file @ops.token key:app/ list"},
		reply{
			"disagree key:app/ list  THE RESOLVER DECIDES ALLOW, THE SERVER DENY: do not rely on either\n", "", 2})
	w.want(t, asked{address: liar, token: w.Token, args: "explain -engine both -token-file @ops.token key:app/ list"},
		reply{
			"key:app/ list  DISAGREE: THE RESOLVER DECIDES ALLOW, THE SERVER DENY: do not rely on either\n  wins    " +
				"key_prefix \"app/\" = write\n          " + opsKeys + "\n", "", 2})
	got := w.ask(t, asked{address: liar, token: w.Token,
		args: "can -json -engine both -token-file @ops.token key:app/ list"})
	if !strings.Contains(got.out, `"decision":"disagree"`) || !strings.Contains(got.out, `"server":"deny"`) {
		t.Errorf("got %+v", got)
	}
}

// aclWithoutEndpoint checks the answers without the endpoint, which is internal to Consul and may go.
func aclWithoutEndpoint(t *testing.T, w *aclWorld) {
	without := w.between(t, func(r *http.Response) {
		r.StatusCode = http.StatusNotFound
		replace(r, "Invalid URL path: not a recognized HTTP API endpoint")
	})
	w.want(t, asked{address: without, token: w.Token,
		args: "can -engine both -token-file @ops.token service:web write"}, reply{
		denied,
		"warning: check the token's permissions at the server: the server has no /v1/internal/acl/authorize: the " +
			"resolver's answers follow\n", 2})
	w.want(t, asked{address: without, token: w.Token,
		args: "can -engine server -token-file @ops.token service:web write"}, reply{
		"",
		"consul-ecs acl: check the token's permissions at the server: the server has no /v1/internal/acl/authorize: " +
			"use -engine resolver\n", 3})
	broken := w.between(t, func(r *http.Response) { replace(r, "[]") })
	for _, engine := range []string{"server", "both"} {
		w.want(t, asked{address: broken, token: w.Token,
			args: "can -engine " + engine + " -token-file @ops.token service:web write"}, reply{
			"", "consul-ecs acl: check the token's permissions at the server: got 0 results for 1 queries\n", 3})
	}
}

// aclUnreachable checks that a server that does not answer makes nothing allowed, and nothing denied.
func aclUnreachable(t *testing.T, w *aclWorld) {
	closed := testkit.ClosedAddress(t)
	for _, args := range []string{
		"can service:web write", "can -engine both service:web write", "can -engine server service:web write",
		"can -accessor " + opsAccessor + " acl read",
		"can -token-file @ops.token acl read", "can -login m acl read", "explain acl read", "rules", "lint", "export",
	} {
		got := w.ask(t, asked{address: closed, token: w.Token, args: args})
		if got.code != 3 || got.out != "" ||
			!strings.HasSuffix(got.err, "connect: connection refused (CONSUL_HTTP_ADDR is the server's address) "+
				"[CE-CONSUL-REFUSED]\n") {
			t.Errorf("acl %s: %+v", args, got)
		}
	}
	w.want(t, asked{token: w.Token, args: "can -datacenter dc9 -accessor " + opsAccessor + " acl read"},
		reply{"", "consul-ecs acl: datacenter \"dc9\": the server knows dc1 only\n", 3})
	w.want(t, asked{token: w.Token, args: "can -datacenter dc9 -engine server acl read"},
		reply{"",
			"consul-ecs acl: check the token's permissions at the server: Unexpected response code: 500 (No path to " +
				"datacenter) [CE-LOGIN-DATACENTER]\n", 3})
	w.want(t, asked{token: w.Token, args: "can -datacenter dc1 -engine both -token-file @ops.token service:web write"},
		reply{denied, "", 2})
}

// aclDisabled checks that every request is allowed without ACLs, with a warning.
func aclDisabled(t *testing.T, w *aclWorld) {
	open, err := testkit.StartConsul(testkit.ConsulOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Stop()
	const warning = "warning: ACLs are disabled on the server: every request is allowed there\n"
	for _, args := range []string{
		"can acl write", "can -engine both acl write", "can -engine server acl write",
		"can -accessor " + opsAccessor + " acl write", "can -login m acl write", "can -token-file @ops.token acl write",
	} {
		w.want(t, asked{address: open.HTTPAddr, token: opsSecret, args: args},
			reply{"allow    acl write  ACLs are disabled on the server: every request is allowed\n", warning, 0})
	}
	for args, message := range map[string]string{"rules": "the token: ", "lint": "export policies: ",
		"export": "export policies: "} {
		w.want(t, asked{address: open.HTTPAddr, token: opsSecret, args: args},
			reply{"", "consul-ecs acl: " + message + "ACLs are disabled on the server\n", 3})
	}
}

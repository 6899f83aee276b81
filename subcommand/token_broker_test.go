package subcommand

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// certificate writes a certificate for 127.0.0.1 and its key, and returns the files.
func certificate(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	if err := testkit.WriteCertificates(dir, name, "127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
}

// TestTokenBroker: a real broker serves TLS, asks the ECS API about a task, refuses one
// that ECS does not know and one whose address it may not push to, takes a renewed
// certificate, and ends on TERM.
func TestTokenBroker(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ids := w.run(1)
	dir := t.TempDir()
	audit := filepath.Join(dir, "audit")
	p := w.broker(t, dir, "-audit-file", audit, "-allow-unsealed")
	peer := ""
	// Each request has its own connection, so that it sees the certificate of now.
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, // the test reads the name itself
			VerifyConnection:   func(s tls.ConnectionState) error { peer = s.PeerCertificates[0].Subject.CommonName; return nil },
		}}}
	send := func(method, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	testkit.Eventually(t, "the broker leads", func() bool {
		status, text := send(http.MethodGet, "/v1/health", "")
		return status == http.StatusOK && text == `{"leads":true}`
	})
	for id, want := range map[string]struct {
		status int
		code   string
	}{strings.Repeat("0", 32): {http.StatusNotFound, "unknown_task"}, ids[0]: {0, ""}} {
		nonce := base64.StdEncoding.EncodeToString(make([]byte, 32))
		body := fmt.Sprintf(`{"cluster":"mesh","task_arn":"%s/%s","nonce":%q}`, strings.Replace(w.arn, ":cluster/",
			":task/", 1), id, nonce)
		status, text := send(http.MethodPost, "/v1/token", body)
		e, err := receiver.DecodeRefusal([]byte(text))
		if err != nil || want.status != 0 && (status != want.status || e.Code != want.code) || status < 400 ||
			status >= 500 {
			t.Errorf("%s: %d %s, want %+v", id, status, text, want)
		}
	}
	if peer != "first" {
		t.Errorf("certificate %q", peer)
	}
	certificate(t, dir, "second")
	testkit.Eventually(t, "the renewed certificate is served", func() bool {
		send(http.MethodGet, "/metrics", "")
		return peer == "second"
	})
	if _, text := send(http.MethodGet, "/metrics", ""); !strings.Contains(text,
		`consul_ecs_token_broker_answers_total{code="404"} 1`) ||
		!strings.Contains(text, "consul_ecs_token_broker_leader 1") {
		t.Errorf("metrics\n%s", text)
	}
	log, err := os.ReadFile(audit)
	if err != nil || bytes.Count(log, []byte(`"decision":"rejected"`)) != 2 {
		t.Errorf("audit log %s, %v", log, err)
	}
	endsSoon(t, p.Process)
}

// A key that does not fit is no reason to log every connection.
func TestUnusableCertificateIsLoggedOnce(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), &testkit.Log{}
	f := brokerFlags{listen: "127.0.0.1:0"}
	f.certFile, f.keyFile = certificate(t, dir, "first")
	listener, err := f.listener(hclog.New(&hclog.LoggerOptions{Output: log}))
	if err != nil {
		t.Fatal(err)
	}
	defer f.serveAPI(listener, http.NotFoundHandler(), hclog.NewNullLogger())()
	if err := os.WriteFile(f.keyFile, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatalf("the certificate before is not served: %v", err)
		}
		conn.Close()
	}
	if n := strings.Count(log.String(), "the changed certificate is not used"); n != 1 {
		t.Errorf("%d errors are logged, want 1:\n%s", n, log)
	}
}

// TestTokenBrokerEndsWithoutMetadata: TERM is no failure, also before the broker has started. A
// task among the proxies is warned about then.
func TestTokenBrokerEndsWithoutMetadata(t *testing.T) {
	t.Parallel()
	line := testkit.SelfArgs("consul-ecs", "token-broker", "-policies", "app", "-networks", "10.0.0.0/8",
		"-insecure-plaintext", "-backend", "consul-acl", "-listen", "127.0.0.1:0",
		"-trusted-proxies", "192.0.2.0/24,10.1.0.0/16")
	log := &testkit.Log{}
	p := testkit.StartProcess(t,
		testkit.ProcessOptions{Env: []string{"ECS_CONTAINER_METADATA_URI_V4=http://127.0.0.1:1/v4/x"}, Stderr: log},
		line...)
	testkit.Eventually(t, "it asks for the metadata",
		func() bool { return strings.Contains(log.String(), "read task metadata failed") })
	if !strings.Contains(log.String(), `-trusted-proxies and -networks overlap`) ||
		!strings.Contains(log.String(), "10.1.0.0/16") {
		t.Errorf("no warning of proxies among the tasks in %s", log)
	}
	endsSoon(t, p)
}

func TestTokenBrokerMistakes(t *testing.T) {
	t.Parallel()
	const cluster = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
	good := []string{"-clusters", cluster, "-policies", "app", "-networks", "10.0.0.0/8", "-insecure-plaintext",
		"-backend", "consul-acl", "-listen", "127.0.0.1:0"}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"argument": {append(good, "x"), `unexpected argument "x"`},
		"nothing": {nil,
			"-policies is required\n-networks is required\ngive -cert-file and -key-file, or -insecure-plaintext " +
				"behind a proxy that has TLS\n-backend consul-login: give -login-methods and -login-key-file"},
		"several": {append(good, "-min-port", "0", "-networks", "x", "-trusted-proxies", "y", "-clusters",
			"mesh"),
			"-min-port 0 and -max-port 65535: want a range within 1 to 65535\n-networks: \"x\" is not a CIDR block " +
				"such as 10.0.0.0/8\n-trusted-proxies: \"y\" is not a CIDR block such as 10.0.0.0/8\n-clusters: want " +
				"ARNs"},
		"no TLS": {[]string{"-policies", "app"},
			"give -cert-file and -key-file, or -insecure-plaintext"},
		"two": {append(good, "-cert-file", "x"),
			"-insecure-plaintext and -cert-file or -key-file exclude each other"},
		"no policies": {append(good, "-policies", ""), "-policies is required"},
		"no networks": {append(good, "-networks", ""), "-networks is required"},
		"networks":    {append(good, "-networks", "10.0.0.1"), "-networks: "},
		"pattern":     {append(good, "-families", "["), `pattern "["`},
		"ports": {append(good, "-min-port", "9000", "-max-port", "8000"),
			"-min-port 9000 and -max-port 8000: want a range within 1 to 65535"},
		"cluster": {append(good, "-clusters", "mesh"),
			`-clusters: want ARNs of clusters of one region, got "mesh"`},
		"backend": {append(good, "-backend", "x"),
			`-backend "x": want consul-login, consul-acl or vault`},
		"login": {append(good, "-backend", "consul-login"), "give -login-methods and -login-key-file"},
		"login method": {append(good, "-backend", "consul-login", "-login-key-file", "x", "-login-methods",
			"a"), "-login-methods: want name=duration from 1m0s to 168h0m0s, got \"a\""},
		"unused login method": {append(good, "-backend", "consul-login", "-login-key-file", "x", "-login-methods",
			"a=1h,b=169h"), "-login-methods: want name=duration from 1m0s to 168h0m0s, got \"b=169h\""},
		"other backend's flag": {append(good, "-login-methods", "a=1h"),
			"-login-methods is for -backend consul-login, and not for consul-acl"},
		"other backend's flags": {append(good, "-vault-addr", "https://vault:8200"),
			"-vault-addr is for -backend vault, and not for consul-acl"},
		"advertised memory": {append(good, "-store", "memory", "-advertise", "https://x"),
			"-advertise is for several brokers, and -store memory for one"},
		"unknown addresses": {append(good, "-allow-unknown-address"),
			"-allow-unknown-address: give -trusted-proxies"},
		"task's life": {append(good, "-allow-task-life", "-store", "memory"),
			"-allow-task-life: want -backend consul-acl and -store kv"},
		"vault": {append(good, "-backend", "vault"), "-backend vault: give -vault-addr"},
		"vault plaintext": {append(good, "-backend", "vault", "-vault-addr", "http://vault:8200"),
			`address of Vault "http://vault:8200": want https://`},
		"vault ceiling": {append(good, "-backend", "vault", "-vault-addr", "https://vault:8200",
			"-ceiling-policy", "x"), "-check-policies and -ceiling-policy read Consul's policies"},
		"vault token": {append(good, "-backend", "vault", "-vault-addr", "https://vault:8200"),
			"VAULT_TOKEN or VAULT_TOKEN_FILE is required"},
		"login key": {append(good, "-backend", "consul-login", "-login-key-file", "/nonexistent",
			"-login-methods", "a=1h"), "-login-key-file: read the key"},
		"advertise": {append(good, "-advertise", "broker:8443"), `-advertise "broker:8443": want a URL`},
		"store":     {append(good, "-store", "x"), `-store "x": want kv or memory`},
		"name":      {append(good, "-name", "a/b"), `-name "a/b"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			line := testkit.SelfArgs("consul-ecs", append([]string{"token-broker"}, tt.args...)...)
			cmd := exec.CommandContext(ctx, line[0], line[1:]...)
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x",
				"AWS_REGION=us-east-1")
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), tt.want) {
				t.Errorf("exit code %d, %v, want %q in\n%s", code, cmp.Or(err, ctx.Err()), tt.want, out)
			}
		})
	}
}

// The same cluster twice would be an ambiguous name.
func TestClustersOfTheBrokerAreDistinct(t *testing.T) {
	t.Parallel()
	const mesh, shop = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh",
		"arn:aws:ecs:us-east-1:123456789012:cluster/shop"
	f := brokerFlags{clusters: mesh + "," + shop + "," + mesh}
	if all, err := f.ecsClusters(); err != nil || len(all) != 2 || all[0].ARN != mesh || all[1].ARN != shop {
		t.Errorf("%v, %v", all, err)
	}
}

// An agent replaces the file of the broker's Vault token, which may be absent or empty meanwhile.
func TestVaultTokenFileIsReadForEachCall(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	inv := &cli.Invocation{Getenv: func(key string) string { return map[string]string{"VAULT_TOKEN_FILE": file}[key] }}
	for _, tt := range []struct{ written, want, mistake string }{
		{"", "", "is empty; wait for the agent that writes it"},
		{"s.first\n", "s.first", "<nil>"},
		{"\n", "", "is empty; wait for the agent that writes it"},
		{"s.second", "s.second", "<nil>"},
	} {
		if err := os.WriteFile(file, []byte(tt.written), 0o600); err != nil {
			t.Fatal(err)
		}
		token, err := vaultToken(inv)
		if token.Reveal() != tt.want {
			t.Errorf("file %q: token %q, want %q", tt.written, token.Reveal(), tt.want)
		}
		if !strings.Contains(fmt.Sprint(err), tt.mistake) {
			t.Errorf("file %q: error %v, want %q", tt.written, err, tt.mistake)
		}
		if err != nil && !consulutil.Classify(err).Retryable() {
			t.Errorf("file %q: error %v of class %d, want one that is retried", tt.written, err,
				consulutil.Classify(err))
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := vaultToken(inv); err == nil || !consulutil.Classify(err).Retryable() {
		t.Errorf("no file: error %v, want one that is retried", err)
	}
}

// A longer call could make a token after the broker has revoked what it recorded of it, and
// more connections are refused by Consul.
func TestBrokerBoundsItsCallsOfConsul(t *testing.T) {
	t.Parallel()
	o := brokerConsul(&cli.Invocation{Getenv: func(string) string { return "" }})
	if o.Timeout != 10*time.Second || o.MaxConns != 64 {
		t.Errorf("%s and %d connections, want 10s, half the limit of a redemption, and 64", o.Timeout, o.MaxConns)
	}
}

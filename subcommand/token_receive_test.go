package subcommand

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// runCommand runs a command in this process and returns its exit code and stderr.
func runCommand(env map[string]string, args ...string) (int, string) {
	var stdout, stderr bytes.Buffer
	app := cli.App{Name: "consul-ecs", Commands: commands()}
	code := cli.Main(app, args, func(k string) string { return env[k] }, strings.NewReader(""), &stdout, &stderr)
	return code, stderr.String()
}

func TestTokenReceiveUsage(t *testing.T) {
	t.Parallel()
	valid := []string{"-broker", "https://127.0.0.1:1", "-token-file", filepath.Join(t.TempDir(), "token")}
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"stray argument": {append(valid, "now"), nil, `unexpected argument "now"`},
		"no file":        {valid[:2], nil, "-token-file is required"},
		"no broker":      {valid[2:], nil, "-broker or CONSUL_ECS_BROKER_ADDR is required"},
		"broker without TLS": {append(valid, "-broker", "http://10.0.0.1"), nil,
			`address of the broker "http://10.0.0.1": want https://host[:port]`},
		"no CA file": {append(valid, "-broker-ca-file", "/nonexistent"), nil,
			"-broker-ca-file: open /nonexistent"},
		"CA is no PEM": {valid, map[string]string{"CONSUL_ECS_BROKER_CACERT_PEM": "x"},
			"CA certificates of the broker: no certificate in PEM form"},
		"port":    {append(valid, "-callback-port", "0"), nil, "-callback-port 0: want 1 to 65535"},
		"timeout": {append(valid, "-timeout", "0"), nil, "-timeout 0s: want more than 0"},
		"reader": {append(valid, "-token-reader", "app"), nil,
			`-token-reader "app": want a numeric user ID`},
		"no user": {append(valid, "-token-reader", "4294967295"), nil,
			`-token-reader "4294967295": want a numeric user ID`},
		"all of them": {[]string{"-callback-port", "0", "-timeout", "0"}, nil,
			"-token-file is required\n-callback-port 0: want 1 to 65535\n-timeout 0s: want more than 0\n-broker or " +
				"CONSUL_ECS_BROKER_ADDR is required"},
		"stop timeout": {append(valid, "-stop-timeout", "1ms"), nil, "-stop-timeout 1ms"},
		"log level":    {append(valid, "-log-level", "loud"), nil, "loud"},
		"not in a task": {valid, map[string]string{"ECS_CONTAINER_METADATA_URI_V4": ""},
			"ECS_CONTAINER_METADATA_URI_V4 is not set"},
		"directory is absent": {append(valid, "-token-file", "/nonexistent/token"), nil, "/nonexistent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"ECS_CONTAINER_METADATA_URI_V4": "http://127.0.0.1:1"}
			for k, v := range c.env {
				env[k] = v
			}
			if code, stderr := runCommand(env, append([]string{"token-receive"}, c.args...)...); code != 1 ||
				!strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, %s; want 1 and %q", code, stderr, c.want)
			}
		})
	}
}

func TestTokenReceiveNamesObstacles(t *testing.T) {
	t.Parallel()
	m := newMetadata(t)
	m.says(200, running)
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dir, used := t.TempDir(), strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	for want, args := range map[string][]string{
		"listen on the callback port " + used + "; choose a free one by -callback-port": {"-token-file",
			filepath.Join(dir, "token"), "-callback-port", used},
		"read the token file: read " + dir + ": is a directory": {"-token-file", dir},
	} {
		env := map[string]string{"ECS_CONTAINER_METADATA_URI_V4": m.URL}
		if code, stderr := runCommand(env, append([]string{"token-receive", "-broker", "https://127.0.0.1:1"},
			args...)...); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d, %s; want 1 and %q", code, stderr, want)
		}
	}
}

// testBroker is a broker over TLS that believes every request. It pushes to loopback.
type testBroker struct {
	*httptest.Server
	mu       sync.Mutex
	request  receiver.TokenRequest
	handle   secret.Value
	answered int // status of the push
	pushing  sync.WaitGroup
}

func newTestBroker(t *testing.T) *testBroker {
	b := &testBroker{handle: receiver.NewHandle()}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/token", func(w http.ResponseWriter, r *http.Request) {
		body, err := receiver.ReadBody(r.Body)
		if err != nil {
			t.Error(err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.request, err = receiver.DecodeTokenRequest(body); err != nil {
			t.Error(err)
		}
		b.pushing.Go(func() { b.push(t) })
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"request_id":"r1","status_url":"/v1/token/r1"}`)
	})
	mux.HandleFunc("POST /v1/unwrap", func(w http.ResponseWriter, r *http.Request) {
		body, err := receiver.ReadBody(r.Body)
		if err != nil {
			t.Error(err)
		}
		if u, err := receiver.DecodeUnwrapRequest(body); err != nil || !u.Handle.Equal(b.handle) ||
			u.RequestID != "r1" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		answer, err := receiver.Unwrapped{Secret: secret.New("the-token"), Accessor: "accessor", Backend: "consul-acl",
			Expires: time.Now().Add(time.Hour), Policies: []string{"web"}}.Encode()
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(answer)
	})
	b.Server = httptest.NewTLSServer(mux)
	t.Cleanup(b.Close)
	t.Cleanup(b.pushing.Wait)
	return b
}

func (b *testBroker) push(t *testing.T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sealed, err := receiver.Seal(b.request.PublicKey, b.request.TaskARN, b.request.Nonce, b.handle)
	if err != nil {
		t.Error(err)
	}
	body, err := receiver.Push{Token: sealed, TTL: 120, CreationTime: time.Now(), WrappedAccessor: "accessor",
		RequestID: "r1", Nonce: b.request.Nonce}.Encode()
	if err != nil {
		t.Error(err)
	}
	resp, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d", b.request.CallbackPort), "application/json",
		bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	resp.Body.Close()
	b.answered = resp.StatusCode
}

func freePort(t *testing.T) string {
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(ports[0])
}

func (b *testBroker) env(m *metadata) map[string]string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Certificate().Raw})
	return map[string]string{
		"ECS_CONTAINER_METADATA_URI_V4": m.URL, "CONSUL_ECS_BROKER_ADDR": b.URL,
		"CONSUL_ECS_BROKER_CACERT_PEM": string(ca),
	}
}

func TestTokenReceiveOverTLS(t *testing.T) {
	t.Parallel()
	m, b := newMetadata(t), newTestBroker(t)
	m.says(200, running)
	file := filepath.Join(t.TempDir(), "token")
	args := []string{"token-receive", "-token-file", file, "-callback-port", freePort(t), "-timeout", "60s",
		"-log-level", "TRACE"}
	code, stderr := runCommand(b.env(m), args...)
	data, err := os.ReadFile(file)
	if code != 0 || err != nil || string(data) != "the-token" {
		t.Fatalf("exit code %d, file %q, %v: %s", code, data, err, stderr)
	}
	b.pushing.Wait()
	if b.answered != 200 ||
		b.request.TaskARN != "arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a6465404e8b1b2356dc13c2f8" ||
		b.request.Cluster != "arn:aws:ecs:us-west-2:111122223333:cluster/mesh" {
		t.Errorf("push answered %d, request %+v", b.answered, b.request)
	}
	for _, s := range []string{"the-token", b.handle.Reveal()} {
		if strings.Contains(stderr, s) {
			t.Errorf("the log shows %s", s)
		}
	}
	var record struct {
		Accessor, Backend string
	}
	if data, err = os.ReadFile(file + ".json"); err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil || record.Accessor != "accessor" || record.Backend != "consul-acl" ||
		bytes.Contains(data, []byte("the-token")) {
		t.Errorf("record %s, %v", data, err)
	}
	// A second run takes the token over, without the broker.
	b.Close()
	if code, stderr := runCommand(b.env(m), args...); code != 0 ||
		!strings.Contains(stderr, "using the token of an earlier run") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestTokenReceiveRefusesAnUnknownCertificate(t *testing.T) {
	t.Parallel()
	m, b := newMetadata(t), newTestBroker(t)
	m.says(200, running)
	env := b.env(m)
	delete(env, "CONSUL_ECS_BROKER_CACERT_PEM")
	code, stderr := runCommand(env, "token-receive", "-token-file", filepath.Join(t.TempDir(), "token"),
		"-callback-port", freePort(t))
	if code != 2 || !strings.Contains(stderr, "certificate") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Containers of a task have different users and share a volume.
func TestTokenReaderIsAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to become other users")
	}
	testkit.RequireOnPath(t, "cat")
	m, b := newMetadata(t), newTestBroker(t)
	m.says(200, running)
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "token")
	as := func(uid uint32, name string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "cat", name)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.Output()
		return string(out), err
	}
	for _, run := range []string{"new file", "replaced file"} {
		code, stderr := runCommand(b.env(m), "token-receive", "-token-file", file, "-callback-port", freePort(t),
			"-timeout", "60s", "-token-reader", "1000")
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", run, code, stderr)
		}
		b.pushing.Wait()
		if text, err := as(1000, file); text != "the-token" || err != nil {
			t.Errorf("%s: user 1000 reads %q, %v", run, text, err)
		}
		for uid, name := range map[uint32]string{1001: file, 1000: file + ".json"} {
			if text, err := as(uid, name); err == nil {
				t.Errorf("%s: user %d reads %q of %s", run, uid, text, name)
			}
		}
		// The token has expired for the next run.
		record, err := os.ReadFile(file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(record, &fields); err != nil {
			t.Fatal(err)
		}
		fields["expires"] = time.Now().Add(-time.Minute)
		if record, err = json.Marshal(fields); err == nil {
			err = os.WriteFile(file+".json", record, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What -stay asks Consul and Vault about its token.
func TestHoldersLookTheirTokensUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers map[int]string
		alive   func(t *testing.T, address string) func(context.Context, secret.Value) (bool, error)
	}{
		"consul": {map[int]string{200: `{"AccessorID":"a"}`, 403: "ACL not found", 500: "no leader"},
			func(_ *testing.T, address string) func(context.Context, secret.Value) (bool, error) {
				return consulHolder{consulutil.Options{Address: address}, hclog.NewNullLogger()}.alive
			}},
		"vault": {map[int]string{200: `{"request_id":"r","data":{"ttl":60}}`, 403: `{"errors":["permission denied"]}`,
			503: `{"errors":["sealed"]}`}, func(t *testing.T, address string) func(context.Context, secret.Value) (bool,
			error) {
			actions, err := tokenActions(&cli.Invocation{Getenv: func(key string) string { return map[string]string{"VAULT_ADDR": address}[key] }, Log: hclog.NewNullLogger()})
			if err != nil {
				t.Fatal(err)
			}
			return actions["vault"].Alive
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Consul-Token")+r.Header.Get("X-Vault-Token") != "the-token" {
					t.Errorf("token %q", r.Header)
				}
				w.WriteHeader(status)
				fmt.Fprint(w, c.answers[status])
			}))
			t.Cleanup(server.Close)
			look := c.alive(t, server.URL)
			for status = range c.answers {
				alive, err := look(t.Context(), secret.New("the-token"))
				if alive != (status == 200) || (err == nil) != (status < 500) {
					t.Errorf("status %d: alive %v, %v", status, alive, err)
				}
			}
		})
	}
}

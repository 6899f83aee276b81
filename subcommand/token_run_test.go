package subcommand

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/vault"
)

const (
	// tokenRun is how long TestTokensRotateForTenMinutesWithoutAFailedCall takes; in the short
	// lane only the first tokens are used.
	tokenRun, shortTokenRun = 10 * time.Minute, 5 * time.Second
	// callPause is the pause between the calls of a caller.
	callPause = 50 * time.Millisecond
	// overlap is how long a replaced token lives, a tenth of the minute that tokens live, and
	// rereads how long a caller uses a token that it has read.
	overlap, rereads = 6 * time.Second, 5 * time.Second
	// tokenKey may be read with the policy of the tokens.
	tokenKey = "web/greeting"
)

// TestTokensRotateForTenMinutesWithoutAFailedCall: token-broker and token-receive -stay run
// as processes, for each backend, with real Consul, Vault or its fake, and tokens that live
// for a minute, while callers use the tokens without a pause. No call fails, Consul's tokens
// are replaced and Vault's is renewed, at the end no token is left, and no secret is in a
// log, the audit log, Consul's KV, the metrics or the record of the receiver, in no encoding.
func TestTokensRotateForTenMinutesWithoutAFailedCall(t *testing.T) {
	t.Parallel()
	if !testkit.OwnNetwork(t, "10.42.0.1/16") { // where ECS has the tasks
		return
	}
	length := tokenRun
	if testing.Short() {
		length = shortTokenRun
	}
	w := newTokenWorld(t)
	uses := []*tokenUse{w.use(backend.ConsulLogin, 0), w.use(backend.ConsulACL, 1), w.use(backend.Vault, 2)}
	for _, u := range uses {
		testkit.Eventually(t, u.name+": the first token", func() bool { _, err := os.Stat(u.file); return err == nil })
	}
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var calling sync.WaitGroup
	for _, u := range uses {
		for _, use := range []time.Duration{0, rereads, rereads} {
			calling.Go(func() { u.call(ctx, use) })
		}
	}
	for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		for _, u := range uses {
			u.observe()
		}
	}
	calling.Wait()
	for _, u := range uses {
		u.end(length)
	}
	w.wantNoSecrets()
}

// tokenWorld is a cluster whose Consul and Vault are set up as documented.
type tokenWorld struct {
	*clusterWorld
	vault *vault.Server
	dir   string
	tasks []string

	texts   map[string]string // what must have no secret, by what it is
	secrets map[string]bool
}

func newTokenWorld(t *testing.T) *tokenWorld {
	t.Helper()
	w := &tokenWorld{clusterWorld: newClusterWorld(t), vault: vault.New(t), dir: t.TempDir(),
		texts: map[string]string{}, secrets: map[string]bool{}}
	w.secrets[w.Token] = true
	w.ecs.Register(`{"family": "web", "containerDefinitions": [{"name": "app", "image": "app", "memory": 64,
		"dockerLabels": {"consul.hashicorp.com/policies": "web-config", "consul.hashicorp.com/ttl": "1m"}}],
		"networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512"}`)
	w.tasks = w.ecs.Run(awstest.TaskGroup{Family: "web", Count: 3, Cluster: "mesh"})
	script, err := os.ReadFile("../broker/backend/testdata/consul-login.sh")
	if err != nil {
		t.Fatal(err)
	}
	testkit.RequireBinary(t, "openssl")
	setup := exec.CommandContext(t.Context(), "sh", "-euc",
		`consul acl policy create -name web-config -rules 'key_prefix "web/" { policy = "read" }'
		consul acl policy create -name web-queue -rules 'key_prefix "queue/" { policy = "write" }'
		consul kv put `+tokenKey+` hello
		`+strings.Replace(string(script), "in 1h 72h", "in 1m", 1))
	setup.Dir = w.dir
	setup.Env = append(os.Environ(), "CONSUL_HTTP_ADDR="+w.HTTPAddr, "CONSUL_HTTP_TOKEN="+w.Token,
		"PATH="+filepath.Dir(testkit.Binary("consul"))+":"+os.Getenv("PATH"))
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rules, err := os.ReadFile("../broker/backend/testdata/vault-broker.hcl")
	if err != nil {
		t.Fatal(err)
	}
	w.vault.Policy(t, "token-broker", string(rules))
	w.vault.Policy(t, "web-config", `path "secret/data/web" { capabilities = ["read"] }`)
	w.vault.Role(t, backend.VaultRole, map[string]any{"allowed_policies_glob": []string{"web-*"}, "orphan": true})
	return w
}

// tokenUse is a broker and a task that gets its tokens from it.
type tokenUse struct {
	*tokenWorld
	name             string
	task             int
	dir, url, file   string
	broker, receiver *testkit.Process
	metadata         *metadata
	client           *http.Client
	read             func(token string) (status int, text string, err error) // what a caller does
	calls, failures  atomic.Int64
	tokens           []string // of the file, in order
}

// use starts a broker with a backend, and the receiver of the task with a number.
func (w *tokenWorld) use(name string, task int) *tokenUse {
	w.t.Helper()
	u := &tokenUse{tokenWorld: w, name: name, task: task, dir: w.t.TempDir(), metadata: newMetadata(w.t),
		client: brokerClient(w.t)}
	u.file = filepath.Join(u.dir, "token")
	u.says("RUNNING")
	u.read = func(token string) (int, string, error) {
		return get(http.DefaultClient, "http://"+u.HTTPAddr+"/v1/kv/"+tokenKey+"?raw", "X-Consul-Token", token)
	}
	certFile, keyFile := certificate(w.t, u.dir, name)
	ports, err := testkit.FreePorts(2)
	if err != nil {
		w.t.Fatal(err)
	}
	address := "127.0.0.1:" + port(ports[0])
	u.url = "https://" + address
	// The privileges that the page names.
	rules := `key_prefix "consul-ecs/token-broker/" { policy = "write" } session_prefix "" { policy = "write" }`
	own, env, holder := []string{"-backend", name}, []string(nil), "CONSUL_HTTP_ADDR="+w.HTTPAddr
	switch name {
	case backend.ConsulLogin:
		own = append(own, "-login-methods", "token-broker-1m=1m", "-login-key-file", filepath.Join(w.dir, "broker.key"))
	case backend.ConsulACL:
		rules += ` acl = "write"`
	case backend.Vault:
		own, env, holder = append(own, "-vault-addr", w.vault.URL), u.vaultToken(), "VAULT_ADDR="+w.vault.URL
		u.read = func(token string) (int, string, error) {
			return get(http.DefaultClient, w.vault.URL+"/v1/auth/token/lookup-self", "X-Vault-Token", token)
		}
	}
	token := testkit.Grant(w.t, w.admin, rules)
	w.secrets[token] = true
	// All tasks' requests come from loopback, so that the broker takes it for a proxy.
	u.broker = u.start("broker", append(append(w.env(), "CONSUL_HTTP_TOKEN="+token), env...), append([]string{
		"token-broker", "-clusters", w.arn, "-policies", "web-*", "-networks", "10.42.0.0/16", "-trusted-proxies",
		"127.0.0.0/8", "-allow-unknown-address",
		"-listen", address, "-cert-file", certFile, "-key-file", keyFile, "-name", name, "-audit-file",
		filepath.Join(u.dir, "audit"),
	}, own...)...)
	u.receiver = u.start("receiver", append(u.metadata.env(), holder),
		"token-receive", "-stay", "-broker", u.url, "-broker-ca-file", certFile, "-token-file", u.file,
		"-callback-port", port(ports[1]))
	return u
}

// vaultToken gives the broker its token of Vault in a file.
func (u *tokenUse) vaultToken() []string {
	u.t.Helper()
	own, _ := u.vault.Token(u.t, map[string]any{"policies": []string{"token-broker"}, "period": "24h"})
	u.secrets[own] = true
	file := filepath.Join(u.dir, "vault")
	if err := os.WriteFile(file, []byte(own+"\n"), 0o600); err != nil {
		u.t.Fatal(err)
	}
	return []string{"VAULT_TOKEN_FILE=" + file}
}

// start starts a process, which logs into a file of its name.
func (u *tokenUse) start(name string, env []string, args ...string) *testkit.Process {
	u.t.Helper()
	log, err := os.Create(filepath.Join(u.dir, name+".log"))
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { log.Close() })
	return testkit.StartProcess(u.t, testkit.ProcessOptions{Env: env, Stderr: log},
		testkit.SelfArgs("consul-ecs", append(args, "-log-level", "TRACE")...)...)
}

// says sets the status of the application in the metadata of its task.
func (u *tokenUse) says(status string) {
	container := `{"Name":%q,"Type":"NORMAL","DesiredStatus":%[2]q,"KnownStatus":%[2]q}`
	u.metadata.says(http.StatusOK,
		fmt.Sprintf(`{"Name":"token-receive","Cluster":%q,"TaskARN":%q,"Family":"web","DesiredStatus":"RUNNING","KnownStatus":"RUNNING","Containers":[%s,%s]}`,
			u.arn, u.tasks[u.task], fmt.Sprintf(container, "token-receive", "RUNNING"),
			fmt.Sprintf(container, "app", status)))
}

// call makes calls with the token of the file, which it reads again when it has used it
// for a time. One that a busy machine has held up for longer than the overlap may fail.
func (u *tokenUse) call(ctx context.Context, use time.Duration) {
	read, token := time.Time{}, []byte(nil)
	for tick := time.NewTicker(callPause); ctx.Err() == nil; <-tick.C {
		if time.Since(read) >= use {
			var err error
			read = time.Now()
			if token, err = os.ReadFile(u.file); err != nil {
				u.failed("%v", err)
			}
		}
		u.calls.Add(1)
		if status, text, err := u.read(string(token)); (err != nil || status != http.StatusOK) &&
			time.Since(read) < overlap {
			u.failed("%d %q, %v, with a token read %s ago", status, text, err, time.Since(read))
		}
	}
}

func get(client *http.Client, url, header, token string) (status int, text string, err error) {
	req, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set(header, token)
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}

// failed reports the first failures.
func (u *tokenUse) failed(format string, args ...any) {
	if u.failures.Add(1) < 10 {
		u.t.Errorf("%s: %s: a call failed: %s", time.Now().Format(time.TimeOnly), u.name, fmt.Sprintf(format, args...))
	}
}

// observe notes a new token, and what the processes and Consul show meanwhile.
func (u *tokenUse) observe() {
	u.t.Helper()
	token, err := os.ReadFile(u.file)
	if err != nil {
		u.t.Error(err)
	}
	if slices.Contains(u.tokens, string(token)) {
		return
	}
	u.tokens = append(u.tokens, string(token))
	u.secrets[string(token)] = true
	u.collect("token.json")
}

// collect adds files, the metrics and the records to what must have no secret.
func (u *tokenUse) collect(files ...string) {
	u.t.Helper()
	_, metrics, err := get(u.client, u.url+"/metrics", "X-Consul-Token", "")
	if err != nil || !strings.Contains(metrics, "consul_ecs_token_broker_leader 1") {
		u.t.Errorf("metrics %q, %v", metrics, err)
	}
	u.texts[u.name+", metrics"] += metrics
	pairs, _, err := u.admin.KV().List("consul-ecs/", nil)
	if err != nil {
		u.t.Error(err)
	}
	for _, p := range pairs {
		u.texts[u.name+", KV"] += p.Key + " " + string(p.Value) + "\n"
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(u.dir, name))
		if err != nil || len(text) == 0 {
			u.t.Errorf("%s has %d bytes, %v", name, len(text), err)
		}
		u.texts[u.name+", "+name] += string(text)
	}
}

// end stops the task: its tokens are gone.
func (u *tokenUse) end(length time.Duration) {
	u.t.Helper()
	u.t.Logf("%s: %d tokens and %d calls in %s, %d failed", u.name, len(u.tokens), u.calls.Load(), length,
		u.failures.Load())
	// Each token is replaced at 2/3 of its life, or up to a twentieth of it earlier.
	least, most := 1+int(length/(41*time.Second)), 2+int(length/(37*time.Second))
	if u.name == backend.Vault {
		least, most = 1, 1
	}
	if n := len(u.tokens); n < least || n > most || u.calls.Load() < int64(length/time.Second) {
		u.t.Errorf("%s: %d tokens and %d calls, want %d to %d tokens", u.name, n, u.calls.Load(), least, most)
	}
	u.says("STOPPED")
	u.receiver.Signal(syscall.SIGTERM)
	exits(u.t, u.receiver, 0)
	for _, token := range u.tokens {
		if status, text, err := u.read(token); err != nil || status != http.StatusForbidden {
			u.t.Errorf("%s: a token that was revoked reads %d %q, %v", u.name, status, text, err)
		}
	}
	if entries, err := os.ReadDir(u.dir); err != nil ||
		slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "token") }) {
		u.t.Errorf("%s: %v, %v: files of the token are left", u.name, entries, err)
	}
	u.collect("audit", "receiver.log", "broker.log")
	endsSoon(u.t, u.broker)
}

// wantNoSecrets looks for all secrets of all tasks and brokers in all that was kept.
func (w *tokenWorld) wantNoSecrets() {
	w.t.Helper()
	w.texts["Consul, log"] = w.Log()
	for text := range w.secrets {
		leaks := secret.NewLeaks(secret.New(text))
		for name, kept := range w.texts {
			if form := leaks.Find(kept); form != "" {
				w.t.Errorf("%s: a secret is there, %s", name, form)
			}
		}
	}
}

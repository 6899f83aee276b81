package backend_test

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/vault"
)

// secured is the server of this package's tests.
var secured *testkit.Consul

// program is the Vault server of this package's tests, or nil for a fake of each.
var program *vault.Server

// recipeDir is where the documented setup leaves the broker's key.
var recipeDir string

func TestMain(m *testing.M) {
	var err error
	if secured, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true}); err != nil {
		panic(err)
	}
	if recipeDir, err = os.MkdirTemp("", "broker-key-"); err != nil {
		panic(err)
	}
	if program, err = vault.Program(); err != nil {
		panic(err)
	}
	os.Exit(testkit.Main(m, secured.Stop, program.Stop, func() { os.RemoveAll(recipeDir) }))
}

// line is the way to a server, which a test can interrupt.
type line struct {
	next http.RoundTripper
	mode atomic.Int32
	// before, if set, is called before each request that makes a token.
	before func()
}

const (
	up      int32 = iota
	down          // requests do not arrive
	swallow       // answers do not arrive
)

var errLine = errors.New("the connection was cut")

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.mode.Load() == down {
		return nil, errLine
	}
	makesToken := r.Method != http.MethodGet && (r.URL.Path == "/v1/acl/token" || r.URL.Path == "/v1/acl/login")
	if makesToken && l.before != nil {
		l.before()
	}
	resp, err := l.next.RoundTrip(r)
	if err == nil && l.mode.Load() == swallow {
		resp.Body.Close()
		return nil, errLine
	}
	return resp, err
}

func consulClient(t *testing.T, token string, l *line) *api.Client {
	t.Helper()
	secured.Require(t)
	c, err := consulutil.NewClient(consulutil.Options{
		Address: secured.HTTPAddr, Token: token,
		Wrap: func(next http.RoundTripper) http.RoundTripper {
			t.Cleanup((&http.Client{Transport: next}).CloseIdleConnections)
			l.next = next
			return l
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// recipe applies the documented setup to the server, once.
var recipe = sync.OnceValues(func() (ed25519.PrivateKey, error) {
	script, err := filepath.Abs("testdata/consul-login.sh")
	if err != nil {
		return nil, err
	}
	prepare := exec.Command("sh", "-c",
		`consul acl policy create -name web-config -rules 'key_prefix "web/" { policy = "read" }' &&
		consul acl policy create -name web-queue -rules 'key_prefix "queue/" { policy = "write" }' && sh `+script)
	prepare.Dir = recipeDir
	prepare.Env = append(os.Environ(), "CONSUL_HTTP_ADDR="+secured.HTTPAddr, "CONSUL_HTTP_TOKEN="+secured.Token,
		"PATH="+filepath.Dir(testkit.Binary("consul"))+":"+os.Getenv("PATH"))
	if out, err := prepare.CombinedOutput(); err != nil {
		return nil, errors.New(string(out) + err.Error())
	}
	return backend.ReadLoginKey(filepath.Join(recipeDir, "broker.key"))
})

// system is a backend with its server, as the suite sees it.
type system struct {
	// process is a broker's backend; line is its way to the server.
	process func(t *testing.T, l *line, grantTTL time.Duration) backend.Backend
	// unprivileged is one whose own token may do nothing, or nil.
	unprivileged func(t *testing.T) backend.Backend
	// remedy is in the errors of unprivileged.
	remedy string
	// lives reports whether the server takes a secret.
	lives func(t *testing.T, secret string) bool
	// exists reports whether the server has a token of the accessor.
	exists func(t *testing.T, accessor string) bool
	// wrapsItself is set if a grant survives a restart of the broker.
	wrapsItself bool
}

func systems(t *testing.T) map[string]system {
	t.Helper()
	return map[string]system{backend.ConsulLogin: loginSystem(t), backend.ConsulACL: aclSystem(t),
		backend.Vault: vaultSystem(t)}
}

func aclSystem(t *testing.T) system {
	preparedKey(t)
	return system{
		process: func(t *testing.T, l *line, ttl time.Duration) backend.Backend {
			return &backend.ACLBackend{Client: consulClient(t, testkit.ManagementToken, l), GrantTTL: ttl}
		},
		unprivileged: func(t *testing.T) backend.Backend {
			return &backend.ACLBackend{Client: consulClient(t, "", &line{})}
		},
		remedy: `give the broker's token a policy with acl = "write"`,
		lives:  livesInConsul,
		exists: existsInConsul,
	}
}

func preparedKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	secured.Require(t)
	testkit.RequireBinary(t, "openssl")
	key, err := recipe()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// login returns the backend that the documented setup is for.
func login(t *testing.T, token string, l *line, ttl time.Duration) *backend.LoginBackend {
	return &backend.LoginBackend{
		Client: consulClient(t, token, l), Key: preparedKey(t), GrantTTL: ttl,
		Methods: []backend.LoginMethod{{Name: "token-broker-1h", TTL: time.Hour},
			{Name: "token-broker-72h", TTL: 72 * time.Hour}},
	}
}

func loginSystem(t *testing.T) system {
	preparedKey(t)
	return system{
		// The management token is for the tokens of another process only.
		process: func(t *testing.T, l *line, ttl time.Duration) backend.Backend {
			return login(t, testkit.ManagementToken, l, ttl)
		},
		lives:  livesInConsul,
		exists: existsInConsul,
	}
}

func livesInConsul(t *testing.T, secret string) bool {
	t.Helper()
	opts := &api.QueryOptions{Token: secret, RequireConsistent: true}
	_, _, err := consulClient(t, "", &line{}).ACL().TokenReadSelf(opts.WithContext(t.Context()))
	if err != nil && !consulutil.UnknownToken(err) {
		t.Fatal(err)
	}
	return err == nil
}

func existsInConsul(t *testing.T, accessor string) bool {
	t.Helper()
	if strings.HasPrefix(accessor, "grant-") { // of a login: the token has another
		return false
	}
	opts := &api.QueryOptions{RequireConsistent: true}
	_, _, err := consulClient(t, testkit.ManagementToken, &line{}).ACL().TokenRead(accessor,
		opts.WithContext(t.Context()))
	if err != nil && !consulutil.NoToken(err) {
		t.Fatal(err)
	}
	return err == nil
}

func request(policies ...string) backend.Request {
	id := uuid.NewString()
	return backend.Request{
		RequestID: id,
		Task: backend.Task{
			ARN:     "arn:aws:ecs:eu-west-1:000000000001:task/main/" + id,
			Cluster: "arn:aws:ecs:eu-west-1:000000000001:cluster/main",
			Family:  "web", Revision: 3, Address: netip.MustParseAddr("10.0.0.7"), AvailabilityZone: "eu-west-1a",
			Name: "web",
		},
		Policies: policies, TTL: 2 * time.Hour,
	}
}

func issue(t *testing.T, b backend.Backend, r backend.Request) backend.Grant {
	t.Helper()
	g, err := b.Issue(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func redeem(t *testing.T, b backend.Backend, g backend.Grant) backend.Token {
	t.Helper()
	token, err := b.Redeem(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// wantError fails the test unless err is the sentinel, permanent and with the texts.
func wantError(t *testing.T, err, sentinel error, texts ...string) {
	t.Helper()
	if !errors.Is(err, sentinel) || consulutil.Classify(err).Retryable() {
		t.Fatalf("error %v of class %d, want a permanent %v", err, consulutil.Classify(err), sentinel)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q, want %q in it", err, text)
		}
	}
}

// wantClass fails the test unless an error has a class, and the text in it.
func wantClass(t *testing.T, err error, want retry.Class, text string) {
	t.Helper()
	if got := consulutil.Classify(err); err == nil || got != want {
		t.Fatalf("got %v of class %d, want an error of class %d", err, got, want)
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("got error %q, want %q in it", err, text)
	}
}

// wantNotRevoked fails the test unless a revocation was refused for want of a privilege, and may be
// accepted later.
func wantNotRevoked(t *testing.T, err error, texts ...string) {
	t.Helper()
	if !errors.Is(err, backend.ErrPrivilege) {
		t.Fatalf("error %v, want %v", err, backend.ErrPrivilege)
	}
	if !consulutil.Classify(err).Retryable() {
		t.Errorf("error %v of class %d, want one that is retried", err, consulutil.Classify(err))
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q, want %q in it", err, text)
		}
	}
}

func (s system) wantGone(t *testing.T, accessor string) {
	t.Helper()
	if s.exists(t, accessor) {
		t.Errorf("the server has a token with accessor %s", accessor)
	}
}

func sortedPolicies(t backend.Token) string {
	var all []string
	for _, p := range t.Policies {
		if p != "default" {
			all = append(all, p)
		}
	}
	return cmp.Or(strings.Join(all, ","), "none")
}

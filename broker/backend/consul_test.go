package backend_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestLoginNeedsNoPrivilege(t *testing.T) {
	t.Parallel()
	b := login(t, "", &line{}, 0)
	token := redeem(t, b, issue(t, b, request("web-queue")))
	if !existsInConsul(t, token.Accessor) {
		t.Error("Consul does not know the token")
	}
	for range 2 {
		if err := b.Revoke(t.Context(), token.Accessor); err != nil {
			t.Fatal(err)
		}
	}
	if livesInConsul(t, token.Secret.Reveal()) {
		t.Error("Consul still knows the token")
	}
}

func TestLoginOfAnotherProcessCannotBeRevokedWithoutPrivilege(t *testing.T) {
	t.Parallel()
	crashed := login(t, "", &line{}, 0)
	token := redeem(t, crashed, issue(t, crashed, request("web-config")))
	b := login(t, "", &line{}, 0)
	wantNotRevoked(t, b.Revoke(t.Context(), token.Accessor), token.Accessor, "consul acl token delete -accessor-id",
		"MaxTokenTTL")
}

func TestLoginOfAnotherProcessIsRevokedWithTheSecretOfItsHolder(t *testing.T) {
	t.Parallel()
	crashed := login(t, "", &line{}, 0)
	token := redeem(t, crashed, issue(t, crashed, request("web-config")))
	b := login(t, "", &line{}, 0)
	b.Adopt(backend.Token{Secret: token.Secret, Accessor: token.Accessor, Expires: token.Expires})
	if err := b.Revoke(t.Context(), token.Accessor); err != nil {
		t.Fatal(err)
	}
	if livesInConsul(t, token.Secret.Reveal()) {
		t.Error("Consul still knows the token")
	}
	b.Adopt(token) // of a token that was revoked
	loginSystem(t).wantGone(t, token.Accessor)
}

// The clock of Consul's servers may differ from the broker's.
func TestEndOfATokenIsByTheClockOfThisProcess(t *testing.T) {
	t.Parallel()
	made := `{"Name": "web-config", "AccessorID": "a", "SecretID": "s", "Policies": [{"Name": "web-config"}],
		"CreateTime": "2020-01-01T00:00:00Z", "ExpirationTime": "2020-01-01T01:00:00Z"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, made)
	}))
	t.Cleanup(server.Close)
	client, err := consulutil.NewClient(consulutil.Options{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]backend.Backend{
		backend.ConsulLogin: &backend.LoginBackend{Client: client, Key: preparedKey(t),
			Methods: []backend.LoginMethod{{Name: "m", TTL: time.Hour}}},
		backend.ConsulACL: &backend.ACLBackend{Client: client},
	} {
		token := redeem(t, b, issue(t, b, request("web-config")))
		if life := time.Until(token.Expires); life > time.Hour || life < 50*time.Minute {
			t.Errorf("%s: the token lives for %s, want an hour", name, life)
		}
	}
}

func TestLoginChoosesTheMethodByTTL(t *testing.T) {
	t.Parallel()
	b := login(t, "", &line{}, 0)
	for ttl, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, 71 * time.Hour: time.Hour,
		72 * time.Hour: 72 * time.Hour, 168 * time.Hour: 72 * time.Hour} {
		r := request("web-config")
		r.TTL = ttl
		before := time.Now()
		token := redeem(t, b, issue(t, b, r))
		if life := token.Expires.Sub(before); life < want-time.Minute || life > want+time.Minute {
			t.Errorf("ttl %s: the token lives %s, want %s", ttl, life, want)
		}
	}
	r := request("web-config")
	r.TTL = 59 * time.Minute
	_, err := b.Issue(t.Context(), r)
	wantClass(t, err, retry.Permanent, "none has tokens of 59m0s or less")
}

// method makes an auth method that has the recipe's key and the given rules.
func method(t *testing.T, change func(*api.ACLAuthMethod), rules ...api.ACLBindingRule) backend.LoginMethod {
	t.Helper()
	preparedKey(t)
	admin := consulClient(t, testkit.ManagementToken, &line{}).ACL()
	m, _, err := admin.AuthMethodRead("token-broker-1h", nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Name = "m-" + uuid.NewString()
	change(m)
	if _, _, err := admin.AuthMethodCreate(m, nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		r.AuthMethod = m.Name
		if _, _, err := admin.BindingRuleCreate(&r, nil); err != nil {
			t.Fatal(err)
		}
	}
	return backend.LoginMethod{Name: m.Name, TTL: time.Hour}
}

func TestLoginRefusesMisconfiguredMethods(t *testing.T) {
	t.Parallel()
	asked := api.ACLBindingRule{BindType: "policy", BindName: "web-config", Selector: `"web-config" in list.policies`}
	everyone := api.ACLBindingRule{BindType: "policy", BindName: "web-queue"}
	same := func(*api.ACLAuthMethod) {}
	_, otherKey, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		method func(t *testing.T) backend.LoginMethod
		key    ed25519.PrivateKey
		want   []string
	}{
		"missing": {
			method: func(*testing.T) backend.LoginMethod {
				return backend.LoginMethod{Name: "no-such-method", TTL: time.Hour}
			},
			want: []string{`auth method "no-such-method"`, "create the auth method"},
		},
		"other key": {
			method: func(t *testing.T) backend.LoginMethod { return method(t, same, asked) }, key: otherKey,
			want: []string{"JWTValidationPubKeys"},
		},
		"other audience": {
			method: func(t *testing.T) backend.LoginMethod {
				return method(t, func(m *api.ACLAuthMethod) { m.Config["BoundAudiences"] = []string{"vault"} }, asked)
			},
			want: []string{`BoundAudiences "consul"`},
		},
		"rule without selector": {
			method: func(t *testing.T) backend.LoginMethod { return method(t, same, asked, everyone) },
			want:   []string{`policy "web-queue", which was not requested`, `'"web-queue" in list.policies'`},
		},
		"rule for a service": {
			method: func(t *testing.T) backend.LoginMethod {
				return method(t, same, asked, api.ACLBindingRule{BindType: "service", BindName: "web"})
			},
			want: []string{"roles or identities"},
		},
		"no end": {
			method: func(t *testing.T) backend.LoginMethod {
				return method(t, func(m *api.ACLAuthMethod) { m.MaxTokenTTL = 0 }, asked)
			},
			want: []string{"lives longer than 1h0m0s", "MaxTokenTTL"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := login(t, "", &line{}, 0)
			b.Methods = []backend.LoginMethod{tt.method(t)}
			if tt.key != nil {
				b.Key = tt.key
			}
			r := request("web-config")
			_, err := b.Redeem(t.Context(), issue(t, b, r))
			if err == nil || consulutil.Classify(err).Retryable() {
				t.Fatalf("Redeem: %v of class %d, want a permanent error", err, consulutil.Classify(err))
			}
			for _, text := range append(tt.want, r.Task.ARN) {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error %q, want %q in it", err, text)
				}
			}
			if n := len(tokensOf(t, r)); n != 0 {
				t.Errorf("%d tokens remain, want 0", n)
			}
		})
	}
}

// tokensOf returns the tokens whose description names the request.
func tokensOf(t *testing.T, r backend.Request) []*api.ACLTokenListEntry {
	t.Helper()
	all, _, err := consulClient(t, testkit.ManagementToken,
		&line{}).ACL().TokenList((&api.QueryOptions{RequireConsistent: true}).WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	var found []*api.ACLTokenListEntry
	for _, token := range all {
		if strings.Contains(token.Description, r.RequestID) {
			found = append(found, token)
		}
	}
	return found
}

func TestTokensNameTheirTask(t *testing.T) {
	t.Parallel()
	for prefix, b := range map[string]backend.Backend{
		"broker: ":                  aclSystem(t).process(t, &line{}, 0),
		"token created via login: ": login(t, "", &line{}, 0),
	} {
		r := request("web-config")
		token := redeem(t, b, issue(t, b, r))
		tokens := tokensOf(t, r)
		want := prefix + `{"cluster":"` + r.Task.Cluster + `","request":"` + r.RequestID + `","task":"` + r.Task.ARN +
			`"}`
		if len(tokens) != 1 {
			t.Fatalf("%T: got tokens %+v, want one", b, tokens)
		}
		is := tokens[0]
		got := api.ACLTokenListEntry{AccessorID: is.AccessorID, Description: is.Description, Local: is.Local}
		entry := api.ACLTokenListEntry{AccessorID: token.Accessor, Description: want, Local: true}
		if d := cmp.Diff(entry, got); d != "" {
			t.Errorf("%T: the token differs (-want +got):\n%s", b, d)
		}
	}
}

func TestTokenWithoutExpiryLivesUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	b := aclSystem(t).process(t, &line{}, 0)
	r := request("web-config")
	r.TTL = 0
	token := redeem(t, b, issue(t, b, r))
	made := tokensOf(t, r)
	if len(made) != 1 || made[0].ExpirationTime != nil {
		t.Errorf("got tokens %+v, want one that does not expire", made)
	}
	if !token.Expires.IsZero() {
		t.Errorf("got a token that expires at %s, want one that does not expire", token.Expires)
	}
	// As by another process.
	if err := aclSystem(t).process(t, &line{}, 0).Revoke(t.Context(), token.Accessor); err != nil {
		t.Fatal(err)
	}
	loginSystem(t).wantGone(t, token.Accessor)
	if _, err := login(t, "", &line{}, 0).Issue(t.Context(), r); err == nil {
		t.Error("a login promises a token that it could not revoke later")
	}
}

func TestACLTokenOfALostResponseIsRevoked(t *testing.T) {
	t.Parallel()
	l := &line{}
	b := aclSystem(t).process(t, l, 0)
	g := issue(t, b, request("web-config"))
	l.mode.Store(swallow)
	if _, err := b.Redeem(t.Context(), g); !errors.Is(err, errLine) || !consulutil.Classify(err).Retryable() {
		t.Fatalf("Redeem: %v, want the transient error of the connection", err)
	}
	l.mode.Store(up)
	if !existsInConsul(t, g.Accessor) {
		t.Fatal("Consul has not made the token")
	}
	_, err := b.Redeem(t.Context(), g)
	wantError(t, err, backend.ErrUsed, "request a token again")
	loginSystem(t).wantGone(t, g.Accessor)
}

func TestTokenOfACancelledRedemptionIsReturned(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	l := &line{before: cancel}
	b := login(t, "", l, 0)
	token, err := b.Redeem(ctx, issue(t, b, request("web-config")))
	if err != nil || ctx.Err() == nil {
		t.Fatalf("Redeem: %v, want the token that Consul has made", err)
	}
	if err := b.Revoke(t.Context(), token.Accessor); err != nil {
		t.Error(err)
	}
}

func TestRevocationDuringRedemptionWins(t *testing.T) {
	t.Parallel()
	for _, make := range []func(l *line) backend.Backend{
		func(l *line) backend.Backend { return aclSystem(t).process(t, l, 0) },
		func(l *line) backend.Backend { return login(t, "", l, 0) },
	} {
		l := &line{}
		b := make(l)
		r := request("web-config")
		g := issue(t, b, r)
		l.before = func() {
			if err := b.Revoke(t.Context(), g.Accessor); err != nil {
				t.Error(err)
			}
		}
		_, err := b.Redeem(t.Context(), g)
		wantError(t, err, backend.ErrUsed, r.Task.ARN)
		if n := len(tokensOf(t, r)); n != 0 {
			t.Errorf("%T: %d tokens remain, want 0", b, n)
		}
	}
}

func TestRevocationWithAnUnknownTokenIsNoSuccess(t *testing.T) {
	t.Parallel()
	owner := aclSystem(t).process(t, &line{}, 0)
	token := redeem(t, owner, issue(t, owner, request("web-config")))
	b := &backend.ACLBackend{Client: consulClient(t, uuid.NewString(), &line{})}
	wantNotRevoked(t, b.Revoke(t.Context(), token.Accessor), token.Accessor)
}

// Consul makes no token when it refuses to, and would refuse the revocation, too. When it is not
// known whether it has made one, the revocation asks.
func TestTokenThatWasNeverMadeNeedsNoRevocation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		redemptions []int // statuses
		deletions   int
	}{
		"not redeemed": {}, "refused": {[]int{403}, 0}, "failed, then refused": {[]int{500, 403}, 1},
		"failed": {[]int{500}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deletions, answers := 0, tt.redemptions
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.Method {
				case http.MethodGet:
					io.WriteString(w, `{"Name": "web-config"}`)
				case http.MethodPut:
					w.WriteHeader(answers[0])
					answers = answers[1:]
				case http.MethodDelete:
					deletions++
					w.Header().Set("X-Consul-Default-Acl-Policy", "deny") // as Consul does
				}
			}))
			t.Cleanup(server.Close)
			client, err := consulutil.NewClient(consulutil.Options{Address: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			b := &backend.ACLBackend{Client: client}
			g := issue(t, b, request("web-config"))
			for range tt.redemptions {
				if _, err := b.Redeem(t.Context(), g); err == nil {
					t.Fatal("redeemed")
				}
			}
			if err := b.Revoke(t.Context(), g.Accessor); err != nil || deletions != tt.deletions {
				t.Errorf("%v, %d deletions, want %d", err, deletions, tt.deletions)
			}
		})
	}
}

func TestPolicyDeletedBeforeRedemptionIsNamed(t *testing.T) {
	t.Parallel()
	b := aclSystem(t).process(t, &line{}, 0)
	admin := consulClient(t, testkit.ManagementToken, &line{}).ACL()
	name := "short-lived-" + uuid.NewString()
	policy, _, err := admin.PolicyCreate(&api.ACLPolicy{Name: name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := issue(t, b, request(name))
	if _, err := admin.PolicyDelete(policy.ID, nil); err != nil {
		t.Fatal(err)
	}
	_, err = b.Redeem(t.Context(), g)
	wantError(t, err, backend.ErrPolicy, `policy "`+name+`"`, "consul acl policy create")
}

// Consul finds a policy by its name in any letter case, which the broker's patterns distinguish.
func TestConsulPolicyIsNamedAsConsulDoes(t *testing.T) {
	t.Parallel()
	_, err := aclSystem(t).process(t, &line{}, 0).Issue(t.Context(), request("Web-CONFIG"))
	wantError(t, err, backend.ErrPolicy, `policy "Web-CONFIG"`, `"web-config"`)
}

func TestKeyFileErrorsNameTheRemedy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "broker.key")
	if _, err := backend.ReadLoginKey(file); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), file) {
		t.Errorf("missing file: %v", err)
	}
	if err := os.WriteFile(file, []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backend.ReadLoginKey(file); err == nil ||
		!strings.Contains(err.Error(), "openssl genpkey -algorithm ed25519 -out "+file) {
		t.Errorf("file without a key: %v", err)
	}
}

package setup

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// documented returns the controller's policy as docs/CONTROLLER.md gives it.
func documented(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "CONTROLLER.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```hcl\n")
	rules, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/CONTROLLER.md has no policy")
	}
	return rules
}

// TestDocumentedPolicyIsEnough runs setup with the policy of the page, and
// without each of its rules that setup needs.
func TestDocumentedPolicyIsEnough(t *testing.T) {
	t.Parallel()
	secured.Require(t)
	all := documented(t)
	for name, without := range map[string]string{
		"all":     "",
		"acl":     `acl = "write"`,
		"key":     `key_prefix "consul-ecs/" { policy = "write" }`,
		"session": `session_prefix "" { policy = "write" }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if without != "" && strings.Count(all, without) != 1 {
				t.Fatalf("the page's policy does not have %s", without)
			}
			l := newLab(t)
			rules := all
			if without != "" {
				rules = strings.Replace(all, without, "", 1)
			}
			c, _ := client(t, testkit.Grant(t, management(t), rules), nil)
			s := l.setup(t, c, Options{})
			if name != "all" {
				changes, err := s.Ensure(t.Context())
				lacksRule(t, err, without)
				if len(changes) > 0 {
					t.Errorf("changed:\n%s", text(changes))
				}
				return
			}
			mustEnsure(t, s)
			if again := mustEnsure(t, s); len(again) > 0 {
				t.Errorf("a second start changes:\n%s", text(again))
			}
		})
	}
}

// lacksRule reports an error of setup that does not ask for the rule.
func lacksRule(t *testing.T, err error, rule string) {
	t.Helper()
	if consulutil.Classify(err) != retry.Permanent {
		t.Errorf("not permanent: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "a policy with: "+rule) {
		t.Errorf("got %v, want the rule %s", err, rule)
	}
}

// TestAnonymousReadNeedsAgentRead: the documented policy is not enough for -anonymous-read.
// Everything else is made.
func TestAnonymousReadNeedsAgentRead(t *testing.T) {
	t.Parallel()
	const rule = `agent_prefix "" { policy = "read" }`
	l := newLab(t)
	setup := func(rules string) *Setup {
		c, _ := client(t, testkit.Grant(t, management(t), rules), nil)
		s := l.setup(t, c, Options{})
		s.Wanted.Anonymous = &Policy{Name: l.name + "-anonymous", Rules: `node_prefix "" { policy = "read" }`}
		return s
	}
	changes, err := setup(documented(t)).Ensure(t.Context())
	lacksRule(t, err, rule)
	if len(changes) != 8 {
		t.Errorf("%d changes:\n%s", len(changes), text(changes))
	}
	if rest := mustEnsure(t, setup(documented(t)+rule)); len(rest) == 0 {
		t.Error("nothing was left to make")
	}
}

func TestRefusedTokens(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for name, c := range map[string]struct{ token, want string }{
		"unknown": {"e2f0a1c4-0000-4000-8000-00000000dead",
			"Consul does not know the token: correct CONSUL_HTTP_TOKEN"},
		"none": {"anonymous", `a policy with: acl = "write"`},
	} {
		client, _ := client(t, c.token, nil)
		_, err := l.setup(t, client, Options{}).Ensure(t.Context())
		wantPermanent(t, err, c.want)
		if n := strings.Count(fmt.Sprint(err), c.want); n != 1 {
			t.Errorf("%s: got %v with %q %d times, want once", name, err, c.want, n)
		}
	}
}

// wantPermanent wants a permanent error with a text.
func wantPermanent(t *testing.T, err error, text string) {
	t.Helper()
	testkit.ErrorContains(t, err, text)
	testkit.Equal(t, "class of the error", consulutil.Classify(err), retry.Permanent)
}

// wantRetried wants an error with a text that is no permanent one.
func wantRetried(t *testing.T, err error, text string) {
	t.Helper()
	testkit.ErrorContains(t, err, text)
	if permanent, ok := errors.AsType[*retry.PermanentError](err); ok {
		t.Errorf("permanent error %v", permanent)
	}
}

func TestWithoutACLs(t *testing.T) {
	t.Parallel()
	open.Require(t)
	c, err := consulutil.NewClient(consulutil.Options{Address: open.HTTPAddr})
	if err != nil {
		t.Fatal(err)
	}
	_, err = newLab(t).setup(t, c, Options{}).Ensure(t.Context())
	wantPermanent(t, err, "enable ACLs in Consul")
}

func TestPartitionsWithoutEnterprise(t *testing.T) {
	t.Parallel()
	s := newLab(t).setup(t, management(t), Options{Partition: "ecs"})
	_, err := s.Ensure(t.Context())
	wantPermanent(t, err, "admin partitions need Consul Enterprise")
}

// TestRefusedObjectIsNotPermanent: an auth method of another type, which only an
// operator can mend, keeps nothing back that does not need it, and costs no lock
// while it lasts. Once it is gone the next call makes it.
func TestRefusedObjectIsNotPermanent(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c, r := client(t, testkit.ManagementToken, nil)
	s := l.setup(t, c, Options{})
	mustEnsure(t, s)
	acl := management(t).ACL()
	if _, err := acl.AuthMethodDelete(l.clientMethod(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := acl.AuthMethodDelete(l.serviceMethod(), nil); err != nil {
		t.Fatal(err)
	}
	_, _, err := acl.AuthMethodCreate(&api.ACLAuthMethod{Name: l.clientMethod(), Type: "jwt", Config: map[string]any{
		"JWTValidationPubKeys": []string{publicKey(t)}, "BoundIssuer": "test",
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := s.Ensure(t.Context())
	wantRetried(t, err, l.clientMethod()+" has type \"jwt\"")
	if got := text(changes); !strings.Contains(got, l.serviceMethod()+" created") {
		t.Errorf("changes:\n%s", got)
	}
	r.writes()
	if changes, err := s.Ensure(t.Context()); err == nil || len(changes) > 0 {
		t.Errorf("got %v and changes:\n%s", err, text(changes))
	}
	if writes := r.writes(); len(writes) > 0 {
		t.Errorf("writes while nothing can be done: %q", writes)
	}
	if _, err := acl.AuthMethodDelete(l.clientMethod(), nil); err != nil {
		t.Fatal(err)
	}
	if got := text(mustEnsure(t, s)); !strings.Contains(got, l.clientMethod()+" created") {
		t.Errorf("changes after the method was deleted:\n%s", got)
	}
}

// TestRefusedWriteIsNotPermanent: Consul does not take one object.
func TestRefusedWriteIsNotPermanent(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.setup(t, management(t), Options{})
	s.Wanted.Roles[0].Name = "a name/with a slash"
	changes, err := s.Ensure(t.Context())
	wantRetried(t, err, "create role a name/with a slash")
	if got := text(changes); !strings.Contains(got, l.serviceMethod()+" created") {
		t.Errorf("changes:\n%s", got)
	}
}

// publicKey returns a public key in PEM, as a method of type jwt needs it.
func publicKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func TestUnreachableConsulIsRetried(t *testing.T) {
	t.Parallel()
	c, err := consulutil.NewClient(consulutil.Options{Address: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	s := newLab(t).setup(t, c, Options{})
	if _, err := s.Ensure(t.Context()); err == nil || !consulutil.Unreachable(err) {
		t.Errorf("got %v", err)
	}
}

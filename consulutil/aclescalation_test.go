package consulutil

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
)

// What lint calls an escalation is one on the real server, and what it does not
// is none.
func TestEscalationsAreReal(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	cert, key := authority(t)
	for _, text := range []string{
		`acl = "write"`, `acl = "read"`, `operator = "write"`, `operator = "read"`, `keyring = "write"`, `mesh = "write"`, `peering = "write"`,
		`agent_prefix "" { policy = "write" }`, `key_prefix "" { policy = "write" }`, `node_prefix "" { policy = "write" }`,
		`service_prefix "" { policy = "write" intentions = "write" }`, `session_prefix "" { policy = "write" }`, `query_prefix "" { policy = "write" }`, `event_prefix "" { policy = "write" }`,
	} {
		p, _, err := o.acl.PolicyCreate(&api.ACLPolicy{Name: o.name("escalation"), Rules: "# " + o.salt + "\n" + text}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := client(t, secured, o.token(&api.ACLToken{Policies: []*api.ACLLink{{ID: p.ID}}}).SecretID)
		parsed, err := aclrules.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		claimed := aclrules.Escalation(*parsed[0])

		_, _, err = c.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: aclrules.ManagementID}}}, nil)
		root := allowed(t, err)
		_, err = c.Connect().CASetConfig(&api.CAConfig{Provider: "consul", Config: map[string]any{"PrivateKey": key, "RootCert": cert}}, nil)
		everyService := allowed(t, err)
		if want := aclrules.Escalation(aclrules.Rule{Resource: aclrules.ACL, Level: "write"}); root != (claimed == want) {
			t.Errorf("%s makes a management token: %v; we say %q", text, root, claimed)
		}
		if want := aclrules.Escalation(aclrules.Rule{Resource: aclrules.Operator, Level: "write"}); everyService != (claimed == want) {
			t.Errorf("%s replaces the certificate authority: %v; we say %q", text, everyService, claimed)
		}
		if _, err := o.acl.PolicyDelete(p.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// allowed reports whether the request was permitted.
func allowed(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && Status(err) != http.StatusForbidden {
		t.Fatal(err)
	}
	return err == nil
}

// authority returns a certificate authority that Consul does not know.
func authority(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Other CA"}, NotAfter: time.Now().Add(240 * time.Hour), NotBefore: time.Now().Add(-time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		URIs: []*url.URL{{Scheme: "spiffe", Host: "11111111-2222-3333-4444-555555555555.consul"}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
}

package consulutil

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestEachCertificateErrorHasItsOwnRemedy checks, too, that an expired certificate does not make users change tasks.
func TestEachCertificateErrorHasItsOwnRemedy(t *testing.T) {
	t.Parallel()
	certificate := &x509.Certificate{}
	for name, c := range map[string]struct {
		err         error
		agent, none string
	}{
		"expired": {x509.CertificateInvalidError{Cert: certificate, Reason: x509.Expired},
			"renew the certificate of the Consul servers, unless the clock of this host is wrong",
			"renew the certificate of the Consul servers, unless the clock of this host is wrong"},
		"authority": {x509.UnknownAuthorityError{Cert: certificate},
			"correct caFile: it lacks the CA of the servers' certificates",
			"correct consulServers.http.caCertFile (or CONSUL_HTTPS_CACERT_PEM): it lacks the CA of the servers' " +
				"certificates"},
		"name": {x509.HostnameError{Certificate: certificate, Host: "x"},
			"correct name: it has to be a name in the servers' certificates",
			"correct consulServers.http.tlsServerName: it has to be a name in the servers' certificates"},
		"other": {x509.CertificateInvalidError{Cert: certificate, Reason: x509.TooManyIntermediates},
			"correct caFile, or name",
			"correct consulServers.http.caCertFile (or CONSUL_HTTPS_CACERT_PEM), or consulServers.http.tlsServerName"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fmt.Errorf("dial: %w", &tls.CertificateVerificationError{Err: c.err})
			testkit.Equal(t, "remedy", certificateRemedy(err, "caFile", "name"), c.agent)
			testkit.Equal(t, "remedy of servers", connectionRemedy(err), ": "+c.none)
		})
	}
	testkit.Equal(t, "another error", certificateRemedy(fmt.Errorf("refused"), "a", "b"), "")
}

// TestCausesOfCertificateErrorsAreTheLibrarys verifies certificates: Go tells the causes apart as expected.
func TestCausesOfCertificateErrorsAreTheLibrarys(t *testing.T) {
	t.Parallel()
	now := time.Now()
	later, earlier := now.Add(time.Hour), now.Add(-time.Hour)
	for _, tt := range []struct {
		caEnd, end time.Time
		other      bool
		host, want string
	}{
		{later, earlier, false, "server.dc1.consul",
			"renew the certificate of the Consul servers, unless the clock of this host is wrong"},
		{later, later, true, "server.dc1.consul", "correct ca: it lacks the CA of the servers' certificates"},
		{later, later, false, "10.0.0.1", "correct name: it has to be a name in the servers' certificates"},
		{earlier, later, false, "server.dc1.consul",
			"replace the expired CA certificate in ca, unless the clock of this host is wrong"},
	} {
		ca, leaf := issue(t, tt.caEnd, tt.end)
		if tt.other {
			ca, _ = issue(t, later, later)
		}
		roots := x509.NewCertPool()
		roots.AddCert(ca)
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: tt.host, CurrentTime: now})
		got := certificateRemedy(&tls.CertificateVerificationError{Err: err}, "ca", "name")
		testkit.Equal(t, fmt.Sprint(err), got, tt.want)
	}
}

// issue returns a CA certificate and one of a server that it has signed, which end then.
func issue(t *testing.T, caEnd, end time.Time) (ca, leaf *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Add(-24 * time.Hour)
	sign := func(template, parent *x509.Certificate) *x509.Certificate {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Consul Agent CA"},
		NotBefore: begin, NotAfter: caEnd, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	ca = sign(template, template)
	leaf = sign(&x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: begin, NotAfter: end,
		DNSNames: []string{"server.dc1.consul"}}, ca)
	return ca, leaf
}

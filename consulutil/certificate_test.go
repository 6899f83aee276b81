package consulutil

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"

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

package consulutil

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
)

// ServerTLS is how one protocol's connections to Consul servers are secured.
type ServerTLS struct {
	Enabled bool
	// CAPEM is the text, and CAFile the path, of the CA certificates. At most one of
	// them is set; without both, the system's certificates count.
	CAPEM, CAFile string
	// ServerName is the name in the servers' certificates; the address that is dialled
	// when empty.
	ServerName string
}

// httpTLS returns the protection of HTTP. The environment fills what is empty.
func httpTLS(c config.ConsulServers, pem string) ServerTLS {
	return newServerTLS(c, c.HTTP.HTTPS, pem, c.HTTP.CACertFile, c.HTTP.TLSServerName)
}

// grpcTLS returns the protection of gRPC.
func grpcTLS(c config.ConsulServers, pem string) ServerTLS {
	return newServerTLS(c, c.GRPCTLS(), pem, c.GRPC.CACertFile, c.GRPC.TLSServerName)
}

// newServerTLS puts a protocol's own values over the defaults of c.
func newServerTLS(c config.ConsulServers, on bool, pem, file, name string) ServerTLS {
	if !on {
		return ServerTLS{}
	}
	t := ServerTLS{Enabled: true, CAPEM: strings.TrimSpace(pem), ServerName: cmp.Or(name, c.Defaults.TLSServerName)}
	if t.CAPEM == "" {
		t.CAFile = cmp.Or(file, c.Defaults.CACertFile)
	}
	if _, command := execCommand(c.Hosts); t.ServerName == "" && !command {
		t.ServerName = c.Hosts
	}
	return t
}

// Config returns the configuration of a connection's TLS, nil when it has none. It reads
// the CA file; an error of that is retry.NotYet for Classify, since another container may
// write it later.
func (t ServerTLS) Config() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	return t.over(api.TLSConfig{})
}

// certificateRemedy returns what to do about a certificate that was not accepted; empty for another error. authorities
// and name are the settings of the trusted CAs and of the expected name.
func certificateRemedy(err error, authorities, name string) string {
	if _, cert := errors.AsType[*tls.CertificateVerificationError](err); !cert {
		return ""
	}
	invalid, _ := errors.AsType[x509.CertificateInvalidError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, other := errors.AsType[x509.HostnameError](err)
	switch expired := invalid.Cert != nil && invalid.Reason == x509.Expired; {
	case expired && invalid.Cert.IsCA:
		return "replace the expired CA certificate in " + authorities + ", unless the clock of this host is wrong"
	case expired:
		return "renew the certificate of the Consul servers, unless the clock of this host is wrong"
	case unknown:
		return "correct " + authorities + ": it lacks the CA of the servers' certificates"
	case other:
		return "correct " + name + ": it has to be a name in the servers' certificates"
	}
	return "correct " + authorities + ", or " + name
}

// reading returns a function that reads the configuration each time, since certificates are
// replaced while a task runs, and returns what it read before when they cannot be read. The error
// is that of the first time.
func reading(read func() (*tls.Config, error)) (func() *tls.Config, error) {
	last, err := read()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	return func() *tls.Config {
		mu.Lock()
		defer mu.Unlock()
		if config, err := read(); err == nil {
			last = config
		}
		return last.Clone()
	}, nil
}

// over returns c with t, as the configuration of a connection.
func (t ServerTLS) over(c api.TLSConfig) (*tls.Config, error) {
	if err := t.configure(&c); err != nil {
		return nil, t.explain(err)
	}
	secured, err := api.SetupTLSConfig(&c)
	if err != nil {
		return nil, t.explain(err)
	}
	return secured, nil
}

// explain returns an error of the CA certificates with its class and remedy.
func (t ServerTLS) explain(err error) error {
	if t.CAPEM != "" {
		return usage("CA certificates of the Consul servers: %w: correct CONSUL_HTTPS_CACERT_PEM or "+
			"CONSUL_GRPC_CACERT_PEM", err)
	}
	return fmt.Errorf(
		"CA certificates of the Consul servers: %w: correct caCertFile of consulServers, or CONSUL_CACERT and the like",
		err,
	)
}

// configure puts t over c. The CA file is replaced by its content, so that its
// absence is an fs.ErrNotExist that names the path.
func (t ServerTLS) configure(c *api.TLSConfig) error {
	c.Address = cmp.Or(t.ServerName, c.Address)
	if t.CAPEM != "" {
		c.CAPem, c.CAFile, c.CAPath = []byte(t.CAPEM), "", ""
		return nil
	}
	c.CAFile = cmp.Or(t.CAFile, c.CAFile)
	if c.CAFile == "" {
		return nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return fmt.Errorf("read CA file: %w", err)
	}
	if !strings.Contains(string(pem), "-----BEGIN CERTIFICATE-----") {
		return fmt.Errorf("read CA file: %s holds no PEM certificate", c.CAFile)
	}
	c.CAPem, c.CAFile = pem, ""
	return nil
}

// dialFunc makes connections, as net.Dialer.DialContext does.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialTLS returns a function that connects by dial, and ends the handshake within
// handshakeLimit.
func dialTLS(dial dialFunc, current func() *tls.Config) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		plain, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		config := current()
		config.NextProtos = []string{"h2", "http/1.1"}
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(address)
		}
		ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
		defer cancel()
		conn := tls.Client(plain, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			plain.Close()
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
		return conn, nil
	}
}

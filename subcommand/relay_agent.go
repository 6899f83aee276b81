package subcommand

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// agentServer is the Consul client agent of the task, as the one server of a relay. It is host:port
// of the agent's gRPC.
type agentServer string

// GRPCAddresses implements relay.Servers.
func (a agentServer) GRPCAddresses(context.Context) ([]string, error) {
	return []string{string(a)}, nil
}

// GRPCFailed implements relay.Servers: there is no other one.
func (a agentServer) GRPCFailed(string, error) {}

// GRPCServed implements relay.Servers.
func (a agentServer) GRPCServed(string) {}

// Changed implements relay.Servers: it never does.
func (a agentServer) Changed() <-chan struct{} { return nil }

// HasLeader implements relay.Servers: finding one is the agent's work.
func (a agentServer) HasLeader(context.Context, string) error { return nil }

// chainTLS returns what verifies an agent by CA certificates in PEM alone, as Envoy's bootstrap
// does: an agent's certificate names its node.
func chainTLS(caPEM string) (func() (*tls.Config, error), error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(caPEM)) {
		return nil,
			errors.New("CA certificates of the agent's gRPC: there is none in the PEM text; correct CONSUL_GRPC_CACERT")
	}
	verify := func(s tls.ConnectionState) error {
		rest := x509.NewCertPool()
		for _, c := range s.PeerCertificates[1:] {
			rest.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: rest})
		return err
	}
	return func() (*tls.Config, error) {
		// The name is not verified, the chain is.
		return &tls.Config{InsecureSkipVerify: true, VerifyConnection: verify}, nil
	}, nil
}

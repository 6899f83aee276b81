package scenario

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"
)

// DialFunc is net.Dialer.DialContext, or a namespace's.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// patience bounds every question.
const patience = 5 * time.Second

// ErrServed says that a listener served a caller without a certificate.
var ErrServed = errors.New("it served a caller without a certificate")

// Identity is the SPIFFE ID that a listener presents, empty when its certificate
// has none. The caller has no certificate, so a mesh's listener must refuse it.
func Identity(ctx context.Context, dial DialFunc, address string) (string, error) {
	raw, err := dial(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(patience))
	var peer *x509.Certificate
	conn := tls.Client(raw, &tls.Config{
		// The chain is Consul's own; the identity in it is what is looked at.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			peer = s.PeerCertificates[0]
			return nil
		},
	})
	// TLS 1.3: the refusal may come only with the first read.
	_, err = conn.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	if peer == nil {
		return "", fmt.Errorf("it does not speak TLS: %w", err)
	}
	identity := ""
	if len(peer.URIs) > 0 {
		identity = peer.URIs[0].String()
	}
	if err == nil {
		return identity, ErrServed
	}
	return identity, nil
}

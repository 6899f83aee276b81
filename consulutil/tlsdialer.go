package consulutil

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
)

// dialFunc makes connections, as net.Dialer.DialContext does.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// tlsDialer makes TLS connections. It reads the certificates for each one, since they are
// replaced while a task runs.
type tlsDialer struct {
	dial dialFunc
	read func() (*tls.Config, error)

	mu   sync.Mutex
	last *tls.Config // that could be read
}

// newTLSDialer returns the error of certificates that cannot be read.
func newTLSDialer(dial dialFunc, read func() (*tls.Config, error)) (*tlsDialer, error) {
	config, err := read()
	return &tlsDialer{dial: dial, read: read, last: config}, err
}

// config returns what can be read, or was before: a file that is being replaced may be absent.
func (d *tlsDialer) config() *tls.Config {
	d.mu.Lock()
	defer d.mu.Unlock()
	if config, err := d.read(); err == nil {
		d.last = config
	}
	return d.last.Clone()
}

// dialContext connects, and ends the handshake within handshakeLimit.
func (d *tlsDialer) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	plain, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	config := d.config()
	if config.ServerName == "" {
		if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
			plain.Close()
			return nil, err
		}
	}
	config.NextProtos = []string{"h2", "http/1.1"}
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	conn := tls.Client(plain, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return conn, nil
}

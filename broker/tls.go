package broker

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// Certificate is a server's certificate in two files, which are read again when they
// change: a certificate is renewed without a restart.
type Certificate struct {
	// CertFile holds the chain and KeyFile the key, both PEM.
	CertFile, KeyFile string
	// Failed is called when changed files cannot be used; the certificate before stays.
	Failed func(error)

	mu     sync.Mutex
	loaded *tls.Certificate
	stamp  [2]time.Time
}

// Load reads the files, if they have changed.
func (c *Certificate) Load() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var stamp [2]time.Time
	for i, name := range []string{c.CertFile, c.KeyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return c.loaded, fmt.Errorf("certificate of the server: %w", err)
		}
		stamp[i] = info.ModTime()
	}
	if c.loaded != nil && stamp == c.stamp {
		return c.loaded, nil
	}
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return c.loaded, fmt.Errorf("certificate of the server (%s, %s): %w", c.CertFile, c.KeyFile, err)
	}
	c.loaded, c.stamp = &pair, stamp
	return c.loaded, nil
}

// Config serves with the certificate.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			cert, err := c.Load()
			if err != nil && cert != nil {
				c.Failed(err)
				err = nil
			}
			return cert, err
		},
	}
}

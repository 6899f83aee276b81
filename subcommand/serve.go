package subcommand

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// serve serves until stop is called.
func serve(listener net.Listener, log hclog.Logger, server *http.Server) (stop func()) {
	server.IdleTimeout = time.Minute
	if server.MaxHeaderBytes == 0 {
		server.MaxHeaderBytes = maxHeader
	}
	server.ErrorLog = stdlog.New(&someLines{
		w:         log.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
		Sometimes: rate.Sometimes{First: 10, Interval: 10 * time.Second},
	}, "", 0)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("HTTP server stopped", logkey.Error, err)
		}
	}()
	return func() {
		// With two locks to release, 2 s each at most, the end stays below 5 s.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second/2)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}
}

// maxHeader bounds the header of a request, in bytes.
const maxHeader = 16 << 10

// someLines passes some lines of a log on: any caller can cause them.
type someLines struct {
	w io.Writer
	rate.Sometimes
}

// Write writes a line or omits it.
func (s *someLines) Write(line []byte) (int, error) {
	s.Do(func() { _, _ = s.w.Write(line) })
	return len(line), nil
}

// serverCertificate is a server's certificate in two files, which are read again when they
// change: a certificate is renewed without a restart.
type serverCertificate struct {
	// certFile holds the chain and keyFile the key, both PEM.
	certFile, keyFile string
	log               hclog.Logger

	mu     sync.Mutex
	loaded *tls.Certificate
	stamp  [2]time.Time

	// causes are of the errors about changed files, which each handshake has.
	causes retry.Causes
}

// load reads the files, if they have changed.
func (c *serverCertificate) load() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var stamp [2]time.Time
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return c.loaded, fmt.Errorf("certificate of the server: %w", err)
		}
		stamp[i] = info.ModTime()
	}
	if c.loaded != nil && stamp == c.stamp {
		return c.loaded, nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return c.loaded, fmt.Errorf("certificate of the server (%s, %s): %w", c.certFile, c.keyFile, err)
	}
	c.loaded, c.stamp = &pair, stamp
	return c.loaded, nil
}

// config serves with the certificate: with the one before if changed files cannot be used.
func (c *serverCertificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			cert, err := c.load()
			if err != nil && cert != nil {
				c.log.Log(c.causes.Level(err), "the changed certificate is not used", logkey.Error, err)
				err = nil
			}
			return cert, err
		},
	}
}

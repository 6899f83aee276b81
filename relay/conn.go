package relay

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/meshtask/consul-ecs/internal/tcp"
)

const (
	// dialLimit bounds the connection to one server, and connectLimit its TLS handshake, too.
	dialLimit    = 2 * time.Second
	connectLimit = 3 * time.Second
	// leastPing and mostPing bound the silence after which a server has to answer a ping
	// within pingLimit. Consul closes connections with more than one ping in 15 s. It
	// differs by task, so that a fleet does not ask in step.
	leastPing = 15200 * time.Millisecond
	mostPing  = 16200 * time.Millisecond
	pingLimit = 3 * time.Second
	// The kernel ends a connection keepAliveIdle, and keepAliveInterval for each of
	// keepAliveCount, after the server's address has ceased to answer.
	keepAliveIdle     = 4 * time.Second
	keepAliveInterval = time.Second
	keepAliveCount    = 2
)

// pingAfter returns a duration between leastPing and mostPing.
func pingAfter() time.Duration { return leastPing + rand.N(mostPing-leastPing) }

// newDialer returns a function that connects to servers.
func newDialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	d := tcp.NewDialer(net.KeepAliveConfig{
		Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount,
	}, keepAliveIdle+keepAliveCount*keepAliveInterval)
	d.Timeout = dialLimit
	return d.DialContext
}

// connector connects to the gRPC port of servers.
type connector struct {
	dialer func(ctx context.Context, network, address string) (net.Conn, error)
	// tls returns what verifies the servers; nil for plaintext.
	tls       func() (*tls.Config, error)
	pingAfter time.Duration // silence of a server
}

// newConnector returns a connector with the limits of this package.
func newConnector(tls func() (*tls.Config, error)) connector {
	return connector{dialer: newDialer(), tls: tls, pingAfter: pingAfter()}
}

// connect connects to a server, and returns a function, too, that returns when the server sent
// anything last.
func (c connector) connect(
	ctx context.Context, address string,
) (conn *http.ClientConn, heard func() time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	raw, err := c.dialer(ctx, "tcp", address)
	if err == nil && c.tls != nil {
		raw, err = c.secure(ctx, raw, address)
	}
	if err != nil {
		return nil, nil, err
	}
	observed := &observedConn{Conn: raw, begin: time.Now()}
	conn, err = newTransport(observed, c.pingAfter).NewClientConn(ctx, "http", address)
	if err != nil {
		raw.Close()
	}
	return conn, observed.heard, err
}

// secure makes the TLS handshake of a connection.
func (c connector) secure(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	config, err := c.tls()
	if err != nil {
		conn.Close()
		return nil, err
	}
	config = config.Clone()
	config.NextProtos = []string{"h2"} // for servers that insist
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return secured, nil
}

// newTransport speaks HTTP/2 over a connection without asking for it, also over TLS:
// Consul's gRPC port negotiates no protocol (ALPN), which would mean HTTP/1 to net/http.
func newTransport(conn net.Conn, pingAfter time.Duration) *http.Transport {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		Protocols:          &protocols,
		DisableCompression: true,
		HTTP2: &http.HTTP2Config{
			MaxReadFrameSize: frameSize, MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window,
			SendPingTimeout: pingAfter, PingTimeout: pingLimit,
		},
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}
}

// observedConn records when its other end sent anything.
type observedConn struct {
	net.Conn
	begin time.Time
	last  atomic.Int64 // nanoseconds since begin
}

// Read implements net.Conn.
func (c *observedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.last.Store(int64(time.Since(c.begin)))
	}
	return n, err
}

// heard returns when that was last.
func (c *observedConn) heard() time.Time { return c.begin.Add(time.Duration(c.last.Load())) }

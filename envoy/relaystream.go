package envoy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// dialLimit bounds the connection to one server, its TLS handshake included.
	dialLimit = 10 * time.Second
	// pingAfter is the silence after which a server has to answer a ping within
	// pingLimit. Consul closes connections with more than one ping in 15 s.
	pingAfter = 30 * time.Second
	pingLimit = 10 * time.Second
	// frameSize and window bound what is buffered in each direction. Messages are
	// larger; they pass in parts.
	frameSize = 16 << 10
	window    = 256 << 10
)

// newTransport speaks HTTP/2 without asking for it, also over TLS: Consul's gRPC port
// negotiates no protocol (ALPN), which would mean HTTP/1 to net/http. There is no proxy:
// servers are in the same network.
func newTransport(config *tls.Config) *http.Transport {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	t := &http.Transport{
		Protocols:          &protocols,
		DisableCompression: true,
		HTTP2: &http.HTTP2Config{
			MaxReadFrameSize: frameSize, MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window,
			SendPingTimeout: pingAfter, PingTimeout: pingLimit,
		},
	}
	if config != nil {
		config = config.Clone()
		config.NextProtos = []string{"h2"} // for servers that insist
		t.DialContext = (&tls.Dialer{Config: config}).DialContext
	}
	return t
}

// stream is a connection to one server, for one stream of Envoy.
type stream struct {
	address, token string
	conn           *http.ClientConn
}

// open connects to a server. Envoy's stream waits meanwhile, for as long as no server
// can be reached, since servers are replaced and certificates renewed; the error is that
// of ctx.
func (r *Relay) open(ctx context.Context) (*stream, error) {
	s := &stream{}
	err := retry.Do(ctx, retry.Remote().Within(0), r.Log, "connect Envoy with a Consul server", retry.Always, func(ctx context.Context) error {
		known, err := r.Servers.GRPCAddresses(ctx)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, dialLimit)
		defer cancel()
		conn, err := r.transport.NewClientConn(ctx, "http", known[0])
		if err != nil {
			r.Servers.GRPCFailed(known[0], err)
			return fmt.Errorf("connect to Consul server %s: %w%s", known[0], err, advice(err))
		}
		token, err := r.Token()
		if err != nil {
			conn.Close()
			return fmt.Errorf("read the task's token: %w%s", err, advice(err))
		}
		s.address, s.token, s.conn = known[0], token, conn
		return nil
	})
	return s, err
}

// advice is what to do about a connection that was refused by one of its ends, or a token
// that may not be read.
func advice(err error) string {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &certificate):
		return ": correct the CA certificates (CONSUL_GRPC_CACERT_PEM or caCertFile) or tlsServerName of consulServers"
	case errors.Is(err, fs.ErrPermission):
		return ": run this container as user 5995 or with the file's group, or see mesh-init's -file-group"
	case errors.As(err, &record):
		return ": the port serves no TLS; correct consulServers.grpc.port or set consulServers.grpc.tls to false"
	}
	return ""
}

// forward passes Envoy's request on and the server's answer back, and returns the
// status that ended the answer. Without a status there is an error, and Envoy has got none.
func (r *Relay) forward(s *stream, w http.ResponseWriter, req *http.Request) (status, error) {
	out := req.Clone(req.Context())
	out.URL = &url.URL{Scheme: "http", Host: s.address, Path: req.URL.Path}
	out.Host, out.RequestURI = s.address, ""
	out.Header.Del(tokenHeader)
	if s.token != "" {
		out.Header.Set(tokenHeader, s.token)
	}
	resp, err := s.conn.RoundTrip(out)
	switch {
	case err != nil && r.TLS == nil:
		return status{}, fmt.Errorf("open xDS stream: %w: if the server's port is one for TLS, set consulServers.grpc.tls to true", err)
	case err != nil:
		return status{}, fmt.Errorf("open xDS stream: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return status{}, fmt.Errorf("open xDS stream: HTTP status %s: consulServers.grpc.port is not that of gRPC", resp.Status)
	}
	maps.Copy(w.Header(), resp.Header)
	if got, ok := readStatus(resp.Header); ok { // and nothing follows
		return got, nil
	}
	r.report.established(s.address)
	r.Servers.GRPCServed(s.address)
	if err := pass(w, resp.Body); err != nil {
		return status{}, fmt.Errorf("read xDS stream: %w", err)
	}
	got, ok := readStatus(resp.Trailer)
	if !ok {
		return status{}, errors.New("read xDS stream: it ended without a status")
	}
	for name, values := range resp.Trailer {
		w.Header()[http.TrailerPrefix+name] = values
	}
	return got, nil
}

// pass writes what body has as it comes, after the header.
func pass(w http.ResponseWriter, body io.Reader) error {
	control := http.NewResponseController(w)
	buf := make([]byte, frameSize)
	for {
		if err := control.Flush(); err != nil {
			return err
		}
		n, err := body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

package relay

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
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// refusalLimit is the time in which a server for TLS ends a connection without it. A
	// connection that ends later has another cause.
	refusalLimit = 3 * time.Second
	// frameSize and window bound what is buffered in each direction. Messages are
	// larger; they pass in parts.
	frameSize = 16 << 10
	window    = 256 << 10
)

// stream is a connection to one server, for one stream of Envoy.
type stream struct {
	address, token string
	conn           *http.ClientConn
	heard          func() time.Time // when the server sent anything last
	answered       chan struct{}    // closed when the server has sent the begin of a message
}

// open connects to a server. Envoy's stream waits meanwhile, for as long as no server
// can be reached, since servers are replaced and certificates renewed; the error is that
// of ctx. A change of the servers ends a dial or a pause.
func (r *XDS) open(ctx context.Context) (*stream, error) {
	var s *stream
	var tried []string
	for {
		changed := r.config.Servers.Changed()
		unchanged, stop := context.WithCancel(ctx)
		go func() {
			select {
			case <-changed:
				stop()
			case <-unchanged.Done():
			}
		}()
		connect := func(ctx context.Context) (err error) {
			s, tried, err = r.connect(ctx, tried)
			return err
		}
		err := retry.Do(unchanged, retry.Remote().Within(0), r.config.Log, "connect Envoy with a Consul server",
			retry.Always, connect)
		stop()
		if err == nil || ctx.Err() != nil {
			return s, err
		}
	}
}

// connect tries each server, those among tried last, until one can be reached. It returns
// those that it tried.
func (r *XDS) connect(ctx context.Context, tried []string) (*stream, []string, error) {
	token, err := r.config.Token()
	if err != nil {
		return nil, tried, fmt.Errorf("read the task's token: %w%s", err, advice(err))
	}
	var failure error
	for {
		known, err := r.config.Servers.GRPCAddresses(ctx)
		if err != nil {
			return nil, tried, err
		}
		next := slices.IndexFunc(known, func(a string) bool { return !slices.Contains(tried, a) })
		switch {
		case next < 0 && failure != nil:
			return nil, nil, failure
		case next < 0:
			tried, next = nil, 0
		}
		if failure != nil {
			r.config.Log.Log(r.unreached.Level(failure), "moving to another Consul server",
				logkey.Address, known[next], logkey.Reason, failure)
		}
		address := known[next]
		tried = append(tried, address)
		conn, heard, err := r.connector.connect(ctx, address)
		if err == nil {
			return &stream{address: address, token: token, conn: conn, heard: heard, answered: make(chan struct{})},
				tried, nil
		}
		if ctx.Err() != nil {
			return nil, tried, err
		}
		r.config.Servers.GRPCFailed(address, err)
		failure = fmt.Errorf("connect to Consul server %s: %w%s", address, err, advice(err))
	}
}

// advice returns what to do about a connection that was refused by one of its ends, or a token that cannot be read.
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
func (r *XDS) forward(s *stream, w http.ResponseWriter, req *http.Request) (status, error) {
	out := req.Clone(req.Context())
	out.URL = &url.URL{Scheme: "http", Host: s.address, Path: req.URL.Path}
	out.Host, out.RequestURI = s.address, ""
	out.Header.Del(tokenHeader)
	if s.token != "" {
		out.Header.Set(tokenHeader, s.token)
	}
	begin := time.Now()
	resp, err := s.conn.RoundTrip(out)
	switch {
	case err != nil && r.config.TLS == nil && time.Since(begin) < refusalLimit:
		return status{}, fmt.Errorf("open xDS stream: %w: if the server's port is one for TLS, set "+
			"consulServers.grpc.tls to true", err)
	case err != nil:
		return status{}, fmt.Errorf("open xDS stream: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return status{}, fmt.Errorf("open xDS stream: HTTP status %s: consulServers.grpc.port is not that of gRPC",
			resp.Status)
	}
	maps.Copy(w.Header(), resp.Header)
	if got, ok := readStatus(resp.Header); ok { // and nothing follows
		return got, nil
	}
	if err := copyBody(w, resp.Body, func() { r.established(s) }); err != nil {
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

// established handles the begin of the first message.
func (r *XDS) established(s *stream) {
	close(s.answered)
	r.history.serves()
	r.config.Servers.GRPCServed(s.address)
	r.report.established(s.address)
}

// copyBody writes what body has as it comes, after the header. It calls first before the first
// part.
func copyBody(w http.ResponseWriter, body io.Reader, first func()) error {
	control := http.NewResponseController(w)
	buf := make([]byte, frameSize)
	for {
		if err := control.Flush(); err != nil {
			return err
		}
		n, err := body.Read(buf)
		if n > 0 && first != nil {
			first()
			first = nil
		}
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

package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// tokenPoll is how often the token is compared with the stream's.
	tokenPoll = 5 * time.Second
	// tokenOverlap is how long a new token may be unknown to the server that is asked
	// next: servers replicate tokens. The old one must be valid for as long as both
	// take together.
	tokenOverlap = 2 * time.Second
	// shutdownLimit bounds the end of Serve. Streams end at once.
	shutdownLimit = time.Second
	// repeatAfter is how often a failure that lasts is logged, and refusedAfter how often
	// a refusal that lasts until an operator acts.
	repeatAfter  = 10 * time.Second
	refusedAfter = 10 * time.Minute
)

// Servers are the Consul servers. Methods may be called concurrently.
type Servers interface {
	// GRPCAddresses returns host:port of each server's gRPC port, the one to use first;
	// an error while none is known.
	GRPCAddresses(ctx context.Context) ([]string, error)
	// GRPCFailed reports that a server did not serve: another one is to come first.
	GRPCFailed(address string, err error)
	// GRPCServed reports that a server answers a stream.
	GRPCServed(address string)
	// Changed returns a channel that is closed at the next change of them.
	Changed() <-chan struct{}
	// HasLeader returns an error when the server with that gRPC address has no leader,
	// or does not answer.
	HasLeader(ctx context.Context, address string) error
}

// XDSConfig holds what an XDS works with.
type XDSConfig struct {
	Servers Servers
	// TLS returns what verifies the servers, and is asked for each connection, since CA files
	// are replaced; nil for plaintext. Without a ServerName, a server's certificate must be
	// valid for its address.
	TLS func() (*tls.Config, error)
	// Token returns the secret ID of the ACL token that is valid now, empty without
	// ACLs. It is asked for each stream and every few seconds.
	Token func() (string, error)
	// Refused is called when the servers refuse Envoy permanently, by two of them or the only
	// one, before any has served it; nil for nothing.
	Refused func()
	Log     hclog.Logger
}

// XDS relays Envoy's xDS streams to Consul servers.
type XDS struct {
	config    XDSConfig
	connector connector
	report    report
	history   history
	unreached retry.Causes
	memory    *memory
}

// NewXDS returns an XDS that is not started: Serve does it.
func NewXDS(c XDSConfig) *XDS {
	return &XDS{
		config: c, connector: newConnector(c.TLS), report: report{log: c.Log}, memory: newMemory(c.Log),
	}
}

// Serve relays the streams of the listener's connections until ctx ends; then it
// returns nil, and all streams have ended. It closes the listener. The listener must be
// on loopback, since any client that reaches it uses the token.
func (r *XDS) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{
		Handler:   r,
		Protocols: &protocols,
		HTTP2: &http.HTTP2Config{
			MaxReadFrameSize: frameSize, MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window,
		},
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    r.config.Log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	var stopping sync.WaitGroup
	stopping.Go(func() {
		<-ctx.Done() // the handlers' contexts, too
		limited, done := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
		defer done()
		_ = srv.Shutdown(limited) // what does not end in time is closed
		_ = srv.Close()
	})
	err := srv.Serve(l)
	stopped := ctx.Err() != nil
	cancel()
	stopping.Wait()
	if stopped {
		return nil
	}
	return fmt.Errorf("accept xDS connections on %s: %w", l.Addr(), err)
}

// ServeHTTP relays one stream until it ends, or answers it from the memory while no server
// serves.
func (r *XDS) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path != deltaMethod {
		status{
			unimplemented, "only aggregated delta discovery is relayed, as Consul serves no other: set api_type " +
				"DELTA_GRPC",
		}.write(w)
		return
	}
	newExchange(r.memory, w).run(req, r.serveStream)
}

// serveStream connects a stream with a server until that ends it.
func (r *XDS) serveStream(w http.ResponseWriter, req *http.Request) {
	ctx, end := context.WithCancelCause(req.Context())
	s, err := r.open(ctx)
	if err != nil { // Envoy or the relay ends
		end(nil)
		status{unavailable, err.Error()}.write(w)
		return
	}
	got, err := r.relay(ctx, end, s, w, req)
	cause := context.Cause(ctx)
	end(nil)

	switch {
	case err == nil:
		r.ended(req.Context(), s.address, got)
	case req.Context().Err() != nil:
		r.config.Log.Debug("envoy ended its xDS stream", logkey.Address, s.address)
	case errors.Is(cause, errServerRemoved) || errors.Is(cause, errTokenChanged):
		r.config.Log.Info("ended the xDS stream, envoy opens another", logkey.Address, s.address, logkey.Reason, cause)
		status{unavailable, cause.Error()}.write(w)
	default:
		if cause != nil {
			err = cause
		}
		r.config.Servers.GRPCFailed(s.address, err)
		r.report.failed(hclog.Warn, s.address, err.Error())
		status{unavailable, err.Error()}.write(w)
	}
}

// relay forwards until the stream ends, or has to.
func (r *XDS) relay(
	ctx context.Context, end context.CancelCauseFunc, s *stream, w http.ResponseWriter, req *http.Request,
) (status, error) {
	ctx, stop := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()
	for _, watch := range []func(context.Context, *stream) error{r.outdated, r.silent, r.leaderless} {
		watches.Go(func() {
			if cause := watch(ctx, s); cause != nil {
				end(cause)
			}
		})
	}
	watches.Go(func() {
		<-ctx.Done()
		// The transport sees the end of ctx only when it has something to send.
		s.conn.Close()
	})
	return r.forward(s, w, req.WithContext(ctx))
}

// ended handles the status with which a server ended a stream. No other server permits
// what one has denied; anything else may be this server's problem alone, also a token
// that it does not know: it may be behind.
func (r *XDS) ended(ctx context.Context, address string, got status) {
	text := fmt.Sprintf("status %s: %s", got.code, got.message)
	switch got.code {
	case unauthenticated, permissionDenied:
		r.report.failed(hclog.Warn, address,
			text+": the task's token must exist in Consul and grant service:write on the service of the proxy; "+
				"check whether it was deleted, and the binding rules of the auth method")
		if got.code == permissionDenied {
			return
		}
	case exhausted: // so servers share the load
		r.report.failed(hclog.Info, address, text)
	case invalidArgument, unimplemented:
		r.refused(ctx, address, text)
	default:
		r.report.failed(hclog.Warn, address, text)
	}
	r.config.Servers.GRPCFailed(address, errors.New(text))
}

// refused handles a refusal that a repetition does not change, such as that of a version of
// Envoy. Another server may have another version of Consul.
func (r *XDS) refused(ctx context.Context, address, text string) {
	known, err := r.config.Servers.GRPCAddresses(ctx)
	refusals := r.history.refused(address)
	switch {
	case r.history.served():
		r.report.failed(hclog.Error, address,
			text+": Envoy keeps the configuration that it has, and gets no update: "+refusedRemedy)
	case refusals > 1 || err == nil && len(known) == 1:
		r.report.failed(hclog.Error, address, text+": "+refusedRemedy)
		if r.config.Refused != nil {
			r.config.Refused()
		}
	default:
		r.report.failed(hclog.Warn, address, text)
	}
}

const refusedRemedy = "use a version of Envoy that the Consul servers support, and correct what the text names"

// report logs the transitions of streams. Envoy opens a stream that fails again and
// again, so the same failure is logged once and every 10 s, an error every 10 minutes.
type report struct {
	log hclog.Logger

	mu     sync.Mutex
	last   string
	logged time.Time
}

func (r *report) established(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = ""
	r.log.Info("xDS stream established", logkey.Address, address)
}

func (r *report) failed(level hclog.Level, address, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, again := time.Now(), repeatAfter
	if level == hclog.Error {
		again = refusedAfter
	}
	if reason == r.last && now.Sub(r.logged) < again {
		level = hclog.Debug
	} else {
		r.last, r.logged = reason, now
	}
	r.log.Log(level, "xDS stream ended", logkey.Address, address, logkey.Reason, reason)
}

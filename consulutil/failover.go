package consulutil

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// failover sends each request to the current server. A request that got no
// connection goes to the next server at once, whose turn it is from then on; one
// whose connection broke, or that is not answered within attemptLimit, goes there if it
// may be sent twice. A server that answers that it cannot serve keeps its request, and
// the next request goes to another one.
type failover struct {
	servers *Servers
	next    http.RoundTripper
	scheme  string
}

// RoundTrip implements http.RoundTripper.
func (f *failover) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if _, err := f.servers.await(ctx); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	var last error
	for tried := []netip.Addr(nil); ; {
		server, ok := f.servers.untried(ctx, tried)
		if !ok {
			return nil, last
		}
		tried = append(tried, server)
		resp, sent, err := f.send(r, server, tried)
		switch {
		case err == nil && cannotServe(resp):
			f.servers.refused(server, errors.New(resp.Status))
			return resp, nil
		case err == nil:
			f.servers.served(server, len(tried) > 1)
			return resp, nil
		case ctx.Err() != nil && !timedOut(ctx): // the caller's context ended: no evidence about the server
			return nil, err
		}
		f.servers.failed(server, err)
		if !mayFailOver(r, sent) {
			return nil, err
		}
		// A certificate that one server lacks is no reason for the caller to stop.
		if last == nil || Classify(err).Retryable() || !Classify(last).Retryable() {
			last = err
		}
	}
}

// timedOut reports whether the request's time is over. http.Client may end a request a
// moment before its context ends.
func timedOut(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

// mayFailOver reports whether an unanswered request may be sent to another server.
func mayFailOver(r *http.Request, sent bool) bool {
	ctx := r.Context()
	return ctx.Err() == nil && !timedOut(ctx) && (r.Body == nil || r.GetBody != nil) && (!sent || repeatable(r))
}

// send reports, too, whether the server may have got the request. tried ends with the
// server.
func (f *failover) send(r *http.Request, server netip.Addr, tried []netip.Addr) (*http.Response, bool, error) {
	ctx, a := newAttempt(r.Context())
	if repeatable(r) && !blocking(r) {
		a.late = func() bool { return f.servers.another(ctx, tried) }
	}
	to := r.WithContext(ctx)
	if len(tried) > 1 && r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			a.cancel()
			return nil, false, err
		}
		to.Body = body
	}
	u := *r.URL
	u.Scheme, u.Host = f.scheme, hostPort(server, f.servers.config.HTTP.Port)
	to.URL = &u
	resp, err := f.next.RoundTrip(to)
	if resp, err = a.result(r.Context(), resp, err); err == nil {
		return resp, true, nil
	}
	a.cancel()
	if a.sent.Load() {
		recordDoubt(r.Context())
	}
	// http.Client does this only to an error that nothing wraps.
	record, mismatch := errors.AsType[tls.RecordHeaderError](err)
	if mismatch && string(record.RecordHeader[:]) == "HTTP/" {
		err = http.ErrSchemeMismatch
	}
	return nil, a.sent.Load(), &serverError{u.Host, err}
}

// attempt is a request to one server.
type attempt struct {
	cancel context.CancelFunc
	limit  *time.Timer
	sent   atomic.Bool
	// late, unless nil, is called when there is no answer within attemptLimit, and reports
	// whether the attempt is to end then. It may wait until the attempt's context ends.
	late func() bool

	mu       sync.Mutex
	answered bool
	expired  bool
}

// newAttempt begins one. Its late may be set before it is used.
func newAttempt(ctx context.Context) (context.Context, *attempt) {
	a := &attempt{}
	ctx, a.cancel = context.WithCancel(ctx)
	a.limit = time.AfterFunc(math.MaxInt64, a.expire)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// It asks again when nothing could be written to an idle connection.
		GetConn: func(string) { a.sent.Store(false) },
		GotConn: func(httptrace.GotConnInfo) {
			a.sent.Store(true)
			if a.late != nil {
				a.limit.Reset(attemptLimit)
			}
		},
	}), a
}

// expire ends an attempt that is late.
func (a *attempt) expire() {
	if !a.late() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.answered {
		a.expired = true
		a.cancel()
	}
}

// result ends the limit. ctx is the request's own.
func (a *attempt) result(ctx context.Context, resp *http.Response, err error) (*http.Response, error) {
	a.limit.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered = true
	switch {
	case err == nil && a.expired: // its body ends with the attempt
		resp.Body.Close()
		return nil, errNoAnswer
	case err == nil && needsHTTPS(resp):
		resp.Body.Close()
		return nil, errNeedsHTTPS
	case err == nil:
		resp.Body = &attemptBody{resp.Body, a.cancel}
		return resp, nil
	case a.expired && ctx.Err() == nil:
		return nil, errNoAnswer
	}
	return nil, err
}

// attemptLimit is how long a request that may be sent twice waits for the answer of a
// server while there are others, and until others are looked for. A frozen server accepts
// requests and answers none.
const attemptLimit = 1500 * time.Millisecond

var (
	errNoAnswer = fmt.Errorf("no answer within %s", attemptLimit)
	// errNeedsHTTPS is an answer of Go's HTTP server, which every endpoint has.
	errNeedsHTTPS = errors.New("the Consul server expects HTTPS")
)

// attemptBody releases what an attempt holds when its answer has been read.
type attemptBody struct {
	io.ReadCloser
	release func()
}

func (b *attemptBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// needsHTTPS reports whether the server refused a request because it is not encrypted.
func needsHTTPS(resp *http.Response) bool {
	return resp.StatusCode == http.StatusBadRequest && strings.Contains(peek(resp), "HTTP request to an HTTPS server")
}

// peek returns the beginning of an answer without consuming it.
func peek(resp *http.Response) string {
	body := bufio.NewReaderSize(resp.Body, 1024)
	start, _ := body.Peek(1024) // the reader of the body gets the error
	resp.Body = struct {
		io.Reader
		io.Closer
	}{body, resp.Body}
	return string(start)
}

// connectionRemedy returns what to correct when a connection to a server cannot work, however
// often it is tried; empty for any other error.
func connectionRemedy(err error) string {
	certificate := certificateRemedy(err, "consulServers.http.caCertFile (or CONSUL_HTTPS_CACERT_PEM)",
		"consulServers.http.tlsServerName")
	switch {
	case certificate != "":
		return ": " + certificate
	case errors.Is(err, http.ErrSchemeMismatch):
		return ": set consulServers.http.https to false, or http.port to the servers' HTTPS port"
	case errors.Is(err, errNeedsHTTPS):
		return ": set consulServers.http.https to true, or http.port to the servers' HTTP port"
	}
	return ""
}

// serverError is a request to one server that was not answered.
type serverError struct {
	server string
	err    error
}

func (e *serverError) Error() string {
	return "server " + e.server + ": " + e.err.Error() + connectionRemedy(e.err)
}

func (e *serverError) Unwrap() error { return e.err }

// Timeout makes the error of http.Client report one too: it asks its direct cause.
func (e *serverError) Timeout() bool {
	timeout, ok := errors.AsType[net.Error](e.err)
	return ok && timeout.Timeout()
}

// cannotServe reports whether another server may give a better answer: this one is
// overloaded, or does not reach the leader. Most of Consul's refusals have status 500,
// too; those are about the request.
func cannotServe(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusInternalServerError:
		return containsAny(peek(resp), serverFaults())
	}
	return false
}

// serverFaults returns texts in the answers of a server that has no leader, is no longer the
// leader, or has lost the connection to it. What the leader answers also begins with
// "rpc error making call: ".
func serverFaults() []string {
	return []string{
		"No cluster leader", "Raft leader not found", "leadership lost",
		"leadership transfer in progress", "node is not the leader",
		"No known Consul servers", "Not ready to serve consistent reads",
		"rpc error getting client", "rpc error: shutdown", "rpc error: lead thread", "rpc error: code = Unavailable",
		"rpc error making call: EOF", "session shutdown", "stream closed", "i/o deadline reached", "keepalive timeout",
	}
}

// repeatable reports whether a request may be sent twice without another effect.
func repeatable(r *http.Request) bool {
	_, read := r.Context().Value(readKey{}).(bool)
	return read || r.Method == http.MethodGet || r.Method == http.MethodHead ||
		r.Method == http.MethodPut &&
			(strings.HasPrefix(r.URL.Path, "/v1/catalog/") || strings.HasPrefix(r.URL.Path, "/v1/session/renew/"))
}

// readKey marks the context of a request that only reads, whatever its method.
type readKey struct{}

// blocking reports whether the server may wait for a change before it answers.
func blocking(r *http.Request) bool {
	index := r.URL.Query().Get("index")
	return index != "" && index != "0"
}

package consulutil

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
)

// failover sends each request to the current server. A request that got no
// connection goes to the next server at once, whose turn it is from then on; one
// whose connection broke goes there if it may be sent twice. A server that answers that
// it cannot serve keeps its request, and the next request goes to another one.
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
		resp, sent, err := f.send(r, server, len(tried) > 1)
		switch {
		case err == nil && cannotServe(resp.StatusCode):
			f.servers.failed(server, errors.New(resp.Status))
			return resp, nil
		case err == nil:
			f.servers.served(server, len(tried) > 1)
			return resp, nil
		case ctx.Err() != nil && !timedOut(ctx): // the caller's end says nothing about the server
			return nil, err
		}
		f.servers.failed(server, err)
		if !mayGoOn(r, sent) {
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

// mayGoOn reports whether another server may get a request that a server has not
// answered.
func mayGoOn(r *http.Request, sent bool) bool {
	ctx := r.Context()
	return ctx.Err() == nil && !timedOut(ctx) && (r.Body == nil || r.GetBody != nil) && (!sent || repeatable(r))
}

// send reports, too, whether the server may have got the request.
func (f *failover) send(r *http.Request, server netip.Addr, again bool) (*http.Response, bool, error) {
	var sent atomic.Bool
	to := r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		// It asks again when nothing could be written to an idle connection.
		GetConn: func(string) { sent.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	}))
	if again && r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, false, err
		}
		to.Body = body
	}
	u := *r.URL
	u.Scheme, u.Host = f.scheme, hostPort(server, f.servers.config.HTTP.Port)
	to.URL = &u
	resp, err := f.next.RoundTrip(to)
	if err == nil {
		return resp, true, nil
	}
	// http.Client does this only to an error that nothing wraps.
	record, mismatch := errors.AsType[tls.RecordHeaderError](err)
	if mismatch && string(record.RecordHeader[:]) == "HTTP/" {
		err = http.ErrSchemeMismatch
	}
	return nil, sent.Load(), &serverError{u.Host, err}
}

// connectionRemedy is what to correct when a connection to a server cannot work, however
// often it is tried; empty for any other error.
func connectionRemedy(err error) string {
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case cert:
		return ": correct consulServers.http.caCertFile (or CONSUL_HTTPS_CACERT_PEM), or set consulServers.http.tlsServerName to a name in the servers' certificates"
	case errors.Is(err, http.ErrSchemeMismatch):
		return ": set consulServers.http.https to false, or http.port to the servers' HTTPS port"
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
// overloaded, or does not reach the leader.
func cannotServe(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// repeatable reports whether a request that was sent twice does what it does once.
func repeatable(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead ||
		r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/v1/catalog/")
}

// CloseIdleConnections closes those to all servers.
func (f *failover) CloseIdleConnections() {
	if c, ok := f.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

package consulutil

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync/atomic"
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
	if err := f.servers.await(ctx); err != nil {
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
		case errors.Is(ctx.Err(), context.Canceled):
			return nil, err
		}
		f.servers.failed(server, err)
		if last == nil || Classify(err).Retryable() || !Classify(last).Retryable() {
			last = err // a certificate that one server lacks is no reason to stop
		}
		switch {
		case sent && !repeatable(r):
			return nil, err
		case ctx.Err() != nil, r.Body != nil && r.GetBody == nil:
			return nil, last
		}
	}
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
	var record tls.RecordHeaderError
	if errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/" {
		err = http.ErrSchemeMismatch
	}
	return nil, sent.Load(), fmt.Errorf("server %s: %w", u.Host, err)
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

package receiver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
)

const (
	// requestLimit bounds one request to the broker, its answer included.
	requestLimit = 10 * time.Second
	// maxRetryAfter bounds the pause that an answer can ask for.
	maxRetryAfter = 5 * time.Minute
	// maxRedirects is enough for a follower that names a leader which has just changed.
	maxRedirects = 3
)

// ClientOptions say how the broker is reached.
type ClientOptions struct {
	// Address is an https:// URL. With http:// the host must be a loopback address, for
	// a proxy in the task.
	Address string
	// CAPEM has the CA certificates that verify the broker; empty means the system's.
	CAPEM []byte
	// Transport replaces the network, and with it CAPEM.
	Transport http.RoundTripper
}

// Client is a client of the token broker.
type Client struct {
	base string
	http *http.Client
}

// NewClient returns a client. It does no I/O; its errors are mistakes in the options.
func NewClient(o ClientOptions) (*Client, error) {
	u, err := url.Parse(o.Address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("address of the broker: %w", err)
	case !secret.Confidential(u) || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("address of the broker %q: want https://host[:port], or http:// with a loopback address",
			u.Redacted())
	}
	transport := o.Transport
	if transport == nil {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if len(o.CAPEM) > 0 {
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(o.CAPEM) {
				return nil, errors.New("CA certificates of the broker: no certificate in PEM form")
			}
		}
		transport = &http.Transport{TLSClientConfig: config, MaxIdleConns: 1, IdleConnTimeout: 30 * time.Second,
			Proxy: nil}
	}
	return &Client{
		base: strings.TrimRight(o.Address, "/"),
		http: &http.Client{Transport: transport, Timeout: requestLimit, CheckRedirect: redirect},
	}, nil
}

// redirect follows a broker that is not the leader to the one that is. net/http keeps the
// method and the body of a 307, but not the bearer for another host.
func redirect(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects || next.Method != via[0].Method || !secret.Confidential(next.URL) {
		return errors.New("the broker redirects to an address that must not receive a token, or too often")
	}
	if bearer := via[0].Header.Get("Authorization"); bearer != "" {
		next.Header.Set("Authorization", bearer)
	}
	return nil
}

// RefusedError is an answer of the broker that is not 2xx.
type RefusedError struct {
	Refusal
	Op     string
	Status int
	// After is the pause that the answer asks for.
	After time.Duration
}

// foreign reports whether a proxy has answered: each refusal of the broker has a code.
func (e *RefusedError) foreign() bool { return e.Code == "" }

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("%s: the broker answered %d", e.Op, e.Status)
	if e.Code != "" {
		text += " (" + e.Code + ")"
	}
	text += ": " + cmp.Or(e.Message, http.StatusText(e.Status), "no reason")
	if e.RequestID != "" {
		text += ", request " + e.RequestID
	}
	return text
}

// request asks for a token, or with a bearer for another one in its place.
func (c *Client) request(ctx context.Context, bearer secret.Value, r TokenRequest) (Accepted, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return Accepted{}, err
	}
	op, path := "request a token", "/v1/token"
	if !bearer.Empty() {
		op, path = "rotate the token", "/v1/rotate"
	}
	_, answer, err := c.do(ctx, op, http.MethodPost, path, bearer, body)
	if err != nil {
		return Accepted{}, err
	}
	return DecodeAccepted(answer)
}

// status reads the state of a request.
func (c *Client) status(ctx context.Context, id string) (Status, error) {
	_, answer, err := c.do(ctx, "read the request's state", http.MethodGet, "/v1/token/"+url.PathEscape(id),
		secret.Value{}, nil)
	if err != nil {
		return Status{}, err
	}
	return DecodeStatus(answer)
}

// unwrap redeems a handle. The result's expiry is by the clock of this host.
func (c *Client) unwrap(ctx context.Context, r UnwrapRequest) (Unwrapped, error) {
	body, err := r.Encode()
	if err != nil {
		return Unwrapped{}, err
	}
	header, answer, err := c.do(ctx, "redeem the handle", http.MethodPost, "/v1/unwrap", secret.Value{}, body)
	if err != nil {
		return Unwrapped{}, err
	}
	u, err := DecodeUnwrapped(answer)
	if err == nil && !u.Expires.IsZero() {
		u.Expires = u.Expires.Add(consulutil.Skew(header))
	}
	return u, err
}

// errUnknownToken means that the broker has no record of a token: the token has ended, or
// the broker was restarted without its records.
var errUnknownToken = errors.New("the broker does not know the token")

// errForeign means that a success is that of a load balancer or a page in place of the broker.
var errForeign = errors.New("the answer is not the broker's; check its address")

// revoked reports whether the answer is the broker's that a token is revoked.
func revoked(answer []byte) bool {
	var body struct{ Revoked bool }
	return json.Unmarshal(answer, &body) == nil && body.Revoked
}

// revoke asks the broker to revoke a token. One that it does not know is errUnknownToken.
func (c *Client) revoke(ctx context.Context, token secret.Value) error {
	_, answer, err := c.do(ctx, "revoke the token", http.MethodPost, "/v1/revoke", token, nil)
	if err == nil && !revoked(answer) {
		return errForeign
	}
	refused, ok := errors.AsType[*RefusedError](err)
	switch {
	case ok && refused.foreign():
		return err
	case ok && refused.Code == UnknownToken:
		return &retry.PermanentError{Err: errUnknownToken}
	case ok && refused.Status < 500 && refused.Status != http.StatusTooManyRequests:
		return consulutil.WithClass(err, retry.Permanent)
	}
	return err
}

// do sends a request and returns the header and body of a 2xx answer; any other answer
// is a *RefusedError.
func (c *Client) do(
	ctx context.Context, op, method, path string, bearer secret.Value, body []byte,
) (http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", op, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if !bearer.Empty() {
		req.Header.Set("Authorization", "Bearer "+bearer.Reveal())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", op, err)
	}
	defer resp.Body.Close()
	answer, err := ReadBody(resp.Body)
	if resp.StatusCode/100 != 2 {
		refused := &RefusedError{Op: op, Status: resp.StatusCode, After: retryAfter(resp.Header)}
		if err == nil {
			refused.Refusal, _ = DecodeRefusal(answer) // empty for an answer of a proxy
		}
		return nil, nil, refused
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: read the answer: %w", op, err)
	}
	return resp.Header, answer, nil
}

// retryAfter reads the header of that name, in seconds or as a date.
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	after := time.Duration(0)
	if seconds, err := strconv.Atoi(value); err == nil {
		after = time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	} else if date, err := http.ParseTime(value); err == nil {
		after = time.Until(date)
	}
	return min(max(after, 0), maxRetryAfter)
}

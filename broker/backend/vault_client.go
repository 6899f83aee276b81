package backend

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// vaultTimeout ends a request, its answer included.
const vaultTimeout = 10 * time.Second

// maxVaultAnswer bounds an answer of Vault, in bytes.
const maxVaultAnswer = 1 << 20

// VaultOptions are what a VaultClient needs.
type VaultOptions struct {
	// Address is an https:// URL. With http:// the host must be a loopback address, for
	// a proxy in the task.
	Address string
	// CAFile holds the CA certificates, PEM, that verify Address; the system's if empty.
	CAFile string
	// Namespace is that of Vault Enterprise, or empty.
	Namespace string
	// Transport replaces the network, and with it CAFile.
	Transport http.RoundTripper
}

// VaultClient speaks with one Vault server. It is safe for concurrent use.
type VaultClient struct {
	base, namespace string
	http            *http.Client
}

// NewVaultClient checks the options and reads the CA file.
func NewVaultClient(o VaultOptions) (*VaultClient, error) {
	u, err := url.Parse(o.Address)
	switch {
	case err != nil:
		return nil, exit.Usagef("address of Vault: %w", err)
	case !secret.Confidential(u) || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, exit.Usagef("address of Vault %q: want https://host[:port], or http:// with a loopback address",
			u.Redacted())
	}
	transport := o.Transport
	if transport == nil {
		if transport, err = vaultTransport(o.CAFile); err != nil {
			return nil, err
		}
	}
	return &VaultClient{
		base:      strings.TrimSuffix(o.Address, "/") + "/v1/",
		namespace: o.Namespace,
		http: &http.Client{
			Transport: transport, Timeout: vaultTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// vaultTransport verifies Vault by the CA certificates of a file, or by the system's.
func vaultTransport(caFile string) (http.RoundTripper, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if caFile == "" {
		return transport, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read the CA file of Vault: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA file %s of Vault has no certificate in PEM form", caFile)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	return transport, nil
}

// RenewSelf renews a periodic token by its period and returns its life from now. A permanent
// error means that the token is gone or cannot be renewed.
func (c *VaultClient) RenewSelf(ctx context.Context, token secret.Value) (time.Duration, error) {
	answer, err := c.do(ctx, vaultCall{method: http.MethodPost, path: "auth/token/renew-self", token: token})
	switch {
	case err != nil:
		return 0, vaultError("renew the Vault token", err,
			"it has expired or was revoked, or its policies lack update on auth/token/renew-self, which policy default has")
	case answer.Auth == nil:
		return 0, vaultError("renew the Vault token", errNoAuth, "")
	}
	return seconds(answer.Auth.LeaseDuration), nil
}

// RevokeSelf destroys a token, as its holder.
func (c *VaultClient) RevokeSelf(ctx context.Context, token secret.Value) error {
	if _, err := c.do(ctx, vaultCall{method: http.MethodPost, path: "auth/token/revoke-self",
		token: token}); err != nil {
		return vaultError("revoke the Vault token", err,
			"it is gone already, or its policies lack update on auth/token/revoke-self, which policy default has")
	}
	return nil
}

// LookupSelf returns how long a token still lives.
func (c *VaultClient) LookupSelf(ctx context.Context, token secret.Value) (time.Duration, error) {
	answer, err := c.do(ctx, vaultCall{method: http.MethodGet, path: "auth/token/lookup-self", token: token})
	if err != nil {
		return 0, vaultError("look up the Vault token", err, "it has expired or was revoked")
	}
	return seconds(answer.Data.TTL), nil
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// wholeSeconds rounds up: 0 would mean no limit.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// vaultCall is a request to Vault.
type vaultCall struct {
	method, path string
	token        secret.Value
	// wrap, if not 0, asks Vault to wrap the answer for that long.
	wrap time.Duration
	body any
}

// vaultAnswer is what this package reads of Vault's answers.
type vaultAnswer struct {
	Errors []string `json:"errors"`
	Auth   *struct {
		ClientToken   secret.Value `json:"client_token"`
		Accessor      string       `json:"accessor"`
		Policies      []string     `json:"policies"`
		LeaseDuration int64        `json:"lease_duration"`
		Renewable     bool         `json:"renewable"`
		Orphan        bool         `json:"orphan"`
	} `json:"auth"`
	WrapInfo *struct {
		Token           secret.Value `json:"token"`
		WrappedAccessor string       `json:"wrapped_accessor"`
	} `json:"wrap_info"`
	Data struct {
		Name string `json:"name"`
		TTL  int64  `json:"ttl"`
	} `json:"data"`
	// RequestID is in each successful answer of Vault that has a body, empty in a wrapped one.
	RequestID *string `json:"request_id"`
}

var errNoAuth = errors.New("the answer has no token")

// do sends a request and decodes the answer. The error is a *vaultStatusError, a
// *foreignAnswerError, or that of the transport.
func (c *VaultClient) do(ctx context.Context, r vaultCall) (*vaultAnswer, error) {
	text, err := json.Marshal(r.body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, nil)
	if err != nil {
		return nil, err
	}
	if r.body != nil {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	}
	req.Header.Set("X-Vault-Request", "true")
	req.Header.Set("X-Vault-Token", r.token.Reveal())
	if c.namespace != "" {
		req.Header.Set("X-Vault-Namespace", c.namespace)
	}
	if r.wrap > 0 {
		req.Header.Set("X-Vault-Wrap-TTL", fmt.Sprint(wholeSeconds(r.wrap)))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxVaultAnswer))
	if err != nil {
		return nil, err
	}
	return decodeVault(resp, body)
}

// decodeVault reads an answer. One without a body is Vault's by the header that Vault gives all of its answers.
func decodeVault(resp *http.Response, body []byte) (*vaultAnswer, error) {
	a := &vaultAnswer{}
	err := json.Unmarshal(body, a)
	switch status := resp.StatusCode; {
	case status >= 300 && status < 400:
		return nil, &vaultStatusError{status,
			"a redirect; configure the address of the active node, or request forwarding in Vault"}
	case status >= 400 && err == nil && a.Errors != nil:
		return nil, &vaultStatusError{status, strings.Join(a.Errors, "; ")}
	case status == http.StatusNoContent && resp.Header.Get("Cache-Control") == "no-store":
		return a, nil
	case status >= 400, err != nil, a.RequestID == nil:
		// The decoder's error could quote the answer, which may hold a token.
		return nil, &foreignAnswerError{status}
	}
	return a, nil
}

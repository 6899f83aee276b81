package consulutil

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// RequestTimeout bounds every request of a client, answer included, unless
// Options or WithLimit say otherwise. The API client sets no timeout.
const RequestTimeout = 10 * time.Second

// Options are what a caller wants different from the standard Consul
// environment (CONSUL_HTTP_ADDR, CONSUL_CACERT, CONSUL_HTTP_TOKEN and the
// rest, as api.DefaultConfig reads them). An empty field leaves the
// environment's value.
type Options struct {
	// Address is host:port, with or without http:// or https://, or
	// unix://<path>.
	Address string
	// CAFile holds the CA certificates, PEM, that verify Address.
	CAFile string
	// CAPEM is the text of such certificates; it wins over CAFile and over the
	// environment's file and path.
	CAPEM string
	// Token and TokenFile are the token of every request that brings none. The file is read once, by NewClient; it wins
	// over Token.
	Token, TokenFile string
	// Timeout replaces RequestTimeout, for blocking queries; WaitTime bounds those
	// that give no limit, which Consul would answer after 5 min.
	Timeout, WaitTime time.Duration
	// MaxConns, if set, bounds the connections to Address, and further requests wait. Consul
	// refuses more than 200 of one host with status 429 (http_max_conns_per_client).
	MaxConns int
	// Partition and Namespace are those of requests that name none (Consul
	// Enterprise).
	Partition, Namespace string
	// Servers replaces Address, CAFile, CAPEM and DialContext for a task without an
	// agent. All clients of it share their connections.
	Servers *Servers
	// DialContext replaces the network dialer, for a server in another network
	// namespace.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// Wrap, if set, gets the client's transport and returns what requests go
	// through instead: to count them, for example.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// NewClient builds a client. It reads the CA and token files now, so a caller
// that expects them to appear later calls it inside its retry; every error of
// such a file is retry.NotYet for Classify.
func NewClient(o Options) (*api.Client, error) {
	c, err := NewConfig(o)
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(c)
	if err != nil {
		return nil, usage("consul address %q (consulHTTPAddr or CONSUL_HTTP_ADDR): %w", c.Address, err)
	}
	return client, nil
}

// NewConfig returns the environment's configuration with the options over it, and
// an HTTP client that has a timeout.
func NewConfig(o Options) (*api.Config, error) {
	c := api.DefaultConfig()
	c.Address = cmp.Or(o.Address, c.Address)
	if o.Servers != nil {
		c.Address = o.Servers.url()
	}
	c.Partition, c.Namespace = cmp.Or(o.Partition, c.Partition), cmp.Or(o.Namespace, c.Namespace)
	c.WaitTime = o.WaitTime
	if err := checkAddress(c.Address); err != nil {
		return nil, err
	}
	if err := useTokens(c, o); err != nil {
		return nil, err
	}
	network, err := newTransport(c, o)
	if err != nil {
		return nil, err
	}
	transport := http.RoundTripper(genuine{network})
	if o.Wrap != nil {
		transport = o.Wrap(transport)
	}
	c.HttpClient = &http.Client{Transport: limited{streaming{transport}, cmp.Or(o.Timeout, RequestTimeout)}}
	// Here and not in the API client, which would replace this HTTP client and
	// its timeout.
	if path, ok := strings.CutPrefix(c.Address, "unix://"); ok {
		c.Transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		c.Address = "localhost"
	}
	return c, nil
}

// newTransport returns the transport of the client's requests.
func newTransport(c *api.Config, o Options) (http.RoundTripper, error) {
	if o.Servers != nil {
		return o.Servers.connect()
	}
	if o.DialContext != nil {
		c.Transport.DialContext = o.DialContext
	}
	if o.MaxConns > 0 {
		c.Transport.MaxConnsPerHost, c.Transport.MaxIdleConnsPerHost = o.MaxConns, o.MaxConns
	}
	err := ServerTLS{CAPEM: o.CAPEM, CAFile: o.CAFile}.configure(&c.TLSConfig)
	if err == nil {
		_, err = api.NewHttpClient(c.Transport, c.TLSConfig)
	}
	switch {
	case err != nil && o.CAPEM != "":
		return nil, usage("consul client for %s: CA certificates: %w", c.Address, err)
	case err != nil:
		return nil,
			fmt.Errorf("consul client for %s: %w: correct consulCACertFile, CONSUL_CACERT and the like; in a task "+
				"the consul-client container may not have written it yet", c.Address, err)
	}
	return c.Transport, nil
}

// checkAddress refuses what could never be dialled, which would look like a
// server that is not there yet.
func checkAddress(address string) error {
	full := address
	if !strings.Contains(address, "://") {
		full = "http://" + address
	}
	u, err := url.Parse(full)
	if err != nil || (u.Host == "" && u.Scheme != "unix") {
		return usage("consul address %q (consulHTTPAddr or CONSUL_HTTP_ADDR): want <host>:<port>, with or without "+
			"http:// or https://, or unix:///<path>", address)
	}
	return nil
}

// usage returns the error of a mistake in the configuration, which no retry can correct.
func usage(format string, args ...any) error {
	return &retry.PermanentError{Err: exit.Usagef(format, args...)}
}

// useTokens reads the token file of the options or of the environment. An empty
// environment file falls back to CONSUL_HTTP_TOKEN, as in the API client.
func useTokens(c *api.Config, o Options) error {
	if c.Token != "" && strings.TrimSpace(c.Token) == "" { // the API client would accept it
		return usage("CONSUL_HTTP_TOKEN has no token, only white space: set the token, or remove the variable")
	}
	c.Token = strings.TrimSpace(c.Token) // a secret may end with a newline, which no header takes
	file := c.TokenFile
	c.TokenFile = ""
	if o.Token != "" {
		c.Token, file = o.Token, ""
	}
	if o.TokenFile != "" {
		file = o.TokenFile
	}
	if file == "" {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read token file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	switch {
	case token != "":
		c.Token = token
	case o.TokenFile != "":
		return fmt.Errorf("read token file: %s is empty", file)
	}
	return nil
}

// EffectiveToken returns the token that a client of these options sends, for Envoy to
// present it too. It reads the token file; empty means anonymous.
func EffectiveToken(o Options) (string, error) {
	c := api.DefaultConfig()
	if err := useTokens(c, o); err != nil {
		return "", err
	}
	return c.Token, nil
}

package consulutil

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// record answers every request and remembers the last one's token.
func record(t *testing.T) (address string, token func() string) {
	t.Helper()
	last := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last <- r.Header.Get("X-Consul-Token")
		w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	return server.URL, func() string { return <-last }
}

func TestNewClientTokens(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	envFile, ours, empty := file("env", "from-env-file\n"), file("ours", "from-file\n"), file("empty", "\n")
	tests := []struct {
		name string
		env  map[string]string
		o    Options
		want string
	}{
		{"none", nil, Options{}, ""},
		{"environment", map[string]string{"CONSUL_HTTP_TOKEN": "from-env"}, Options{}, "from-env"},
		{"environment with a newline", map[string]string{"CONSUL_HTTP_TOKEN": "from-env\n"}, Options{}, "from-env"},
		{"environment's file wins",
			map[string]string{"CONSUL_HTTP_TOKEN": "from-env", "CONSUL_HTTP_TOKEN_FILE": envFile}, Options{},
			"from-env-file"},
		{"empty environment file", map[string]string{"CONSUL_HTTP_TOKEN": "from-env", "CONSUL_HTTP_TOKEN_FILE": empty},
			Options{}, "from-env"},
		{"option", map[string]string{"CONSUL_HTTP_TOKEN": "from-env", "CONSUL_HTTP_TOKEN_FILE": envFile},
			Options{Token: "mine"}, "mine"},
		{"file option", map[string]string{"CONSUL_HTTP_TOKEN": "from-env", "CONSUL_HTTP_TOKEN_FILE": envFile},
			Options{Token: "mine", TokenFile: ours}, "from-file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			var token func() string
			tt.o.Address, token = record(t)
			if err := newClient(t, tt.o).Agent().CheckDeregister("x"); err != nil {
				t.Fatal(err)
			}
			if got := token(); got != tt.want {
				t.Errorf("token = %q, want %q", got, tt.want)
			}
			if got, err := EffectiveToken(tt.o); got != tt.want || err != nil {
				t.Errorf("EffectiveToken = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// A request with such a header is not sent, however often it is tried.
func TestBlankTokenOfTheEnvironmentIsRefused(t *testing.T) {
	t.Setenv("CONSUL_HTTP_TOKEN", " \n")
	_, err := NewClient(Options{})
	_, tokenErr := EffectiveToken(Options{})
	testkit.ErrorContains(t, err, "CONSUL_HTTP_TOKEN")
	testkit.Equal(t, "class", Classify(err), retry.Permanent)
	testkit.Equal(t, "class of EffectiveToken", Classify(tokenErr), retry.Permanent)
}

func TestNewClientAddress(t *testing.T) {
	fromEnv, token := record(t)
	t.Setenv("CONSUL_HTTP_ADDR", fromEnv)
	t.Setenv("CONSUL_HTTP_TOKEN", "x")
	if err := newClient(t, Options{}).Agent().CheckDeregister("x"); err != nil {
		t.Fatal(err)
	}
	token()
	other, token := record(t)
	if err := newClient(t,
		Options{Address: strings.TrimPrefix(other, "http://")}).Agent().CheckDeregister("x"); err != nil {
		t.Fatal(err)
	}
	token()
}

// TestNewClientErrors: a file that may still appear is worth a retry; an
// address that makes no sense is not.
func TestNewClientErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	missing := filepath.Join(dir, "missing.pem")
	tests := []struct {
		name string
		o    Options
		want string
		gone bool
		cls  retry.Class
	}{
		{"missing CA", Options{CAFile: missing}, missing, true, retry.NotYet},
		{"half-written CA", Options{CAFile: write("half.pem", "-----BEG")}, "half.pem", false, retry.NotYet},
		{
			"broken CA", Options{CAFile: write("bad.pem", "-----BEGIN CERTIFICATE-----\nx\n")},
			"consul client for", false, retry.NotYet,
		},
		{"missing token file", Options{TokenFile: missing}, missing, true, retry.NotYet},
		{"empty token file", Options{TokenFile: write("token", "\n")}, "is empty", false, retry.NotYet},
		{"two ports", Options{Address: "http://consul:8500:8501"}, "want <host>:<port>", false, retry.Permanent},
		{"port of no sense", Options{Address: "consul:http"}, "want <host>:<port>", false, retry.Permanent},
		{"no host", Options{Address: "https://"}, "want <host>:<port>", false, retry.Permanent},
		{"unknown scheme", Options{Address: "ftp://consul:8500"}, `"ftp://consul:8500"`, false, retry.Permanent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := NewClient(tt.o)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error = %v, want it to name %s", err, tt.want)
			}
			if got := errors.Is(err, fs.ErrNotExist); got != tt.gone {
				t.Errorf("is ErrNotExist = %v, want %v", got, tt.gone)
			}
			if got := Classify(err); got != tt.cls {
				t.Errorf("class = %v, want %v", got, tt.cls)
			}
			if got := cli.ExitCode(err); tt.cls == retry.Permanent && got != 1 {
				t.Errorf("exit code = %d, want 1", got)
			}
		})
	}
}

// TestEveryRequestEnds: the API client itself waits for ever, and
// makes its own client, without timeout, for a unix socket.
func TestEveryRequestEnds(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	for _, network := range []string{"tcp", "unix"} {
		address := map[string]string{"tcp": "127.0.0.1:0", "unix": socket}[network]
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // accepts by itself, never answers
		url := "http://" + l.Addr().String()
		if network == "unix" {
			url = "unix://" + socket
		}
		start := time.Now()
		_, _, err = newClient(t, Options{Address: url, Timeout: 50 * time.Millisecond}).ACL().TokenReadSelf(nil)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%s: error = %v, want a timeout", network, err)
		}
		if d := time.Since(start); d >= RequestTimeout {
			t.Errorf("%s: took %s, want less than without the option", network, d)
		}
	}
	if RequestTimeout != 10*time.Second {
		t.Errorf("RequestTimeout = %s", RequestTimeout)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"AccessorID":"a"}`))
	})}
	go server.Serve(l)
	defer server.Close()
	token, _, err := newClient(t,
		Options{Address: "unix://" + socket}).ACL().TokenReadSelf(
		(&api.QueryOptions{}).WithContext(context.Background()))
	if err != nil || token.AccessorID != "a" {
		t.Errorf("token = %+v, %v", token, err)
	}
}

// Consul refuses more than 200 connections of one host.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	const calls, most = 50, 8
	var conns atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(10 * time.Millisecond)
		w.Header().Set(defaultPolicyHeader, "allow")
		w.WriteHeader(http.StatusNotFound)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c, err := NewClient(Options{Address: server.URL, MaxConns: most})
	if err != nil {
		t.Fatal(err)
	}
	var calling sync.WaitGroup
	for range calls {
		calling.Go(func() {
			if _, _, err := c.KV().Get("none", nil); err != nil {
				t.Error(err)
			}
		})
	}
	calling.Wait()
	if n := conns.Load(); n > most {
		t.Errorf("%d connections for %d calls at one time, want at most %d", n, calls, most)
	}
}

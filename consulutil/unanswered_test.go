package consulutil

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// A login may have made a token only if its request was sent: the log says that
// the controller removes that token, and a false alarm hides the real fault.
func TestOnlySentLoginsCountAsUnanswered(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	closing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	defer closing.Close()
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-release }))
	defer slow.Close()
	defer close(release)
	faulty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "some fault", http.StatusInternalServerError)
	}))
	defer faulty.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		options Options
		want    bool
	}{
		"packets are dropped": {t.Context(),
			Options{Address: "192.0.2.1:1", DialContext: hang, Timeout: 20 * time.Millisecond}, false},
		"connection is refused":           {t.Context(), Options{Address: testkit.ClosedAddress(t)}, false},
		"context has ended before":        {ended, Options{Address: closing.URL}, false},
		"connection ends in TLS":          {t.Context(), Options{Address: "https://" + hangsUp(t)}, false},
		"server answers":                  {t.Context(), Options{Address: faulty.URL}, false},
		"connection ends after the login": {t.Context(), Options{Address: closing.URL}, true},
		"answer does not come in time": {t.Context(), Options{Address: slow.URL, Timeout: 50 * time.Millisecond},
			true},
	} {
		_, err := Login(c.ctx, newClient(t, c.options), LoginParams{Method: "iam", Bearer: "b"})
		for c.options.Address == slow.URL && !isUnanswered(err) && c.options.Timeout < testkit.Patience {
			c.options.Timeout *= 10 // on a busy machine it may end before the login is sent
			_, err = Login(c.ctx, newClient(t, c.options), LoginParams{Method: "iam", Bearer: "b"})
		}
		testkit.Equal(t, name+": unanswered", isUnanswered(err), c.want)
		if err == nil || !Classify(err).Retryable() {
			t.Errorf("%s: got %v, want an error that is retried", name, err)
		}
	}
	if isUnanswered(nil) {
		t.Error("Unanswered(nil) is true")
	}
}

// hangsUp returns an address that closes each connection in the TLS handshake.
func hangsUp(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.ReadFull(c, make([]byte, 5)) // the first record's header
			c.Close()
		}
	}()
	return l.Addr().String()
}

func TestWrongCertificateOfALoginIsPermanent(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{}
	server.StartTLS()
	defer server.Close()
	_, err := Login(t.Context(), newClient(t, Options{Address: server.URL, CAPEM: testkit.OtherCA}),
		LoginParams{Method: "iam", Bearer: "b"})
	testkit.ErrorContains(t, err, "consulCACertFile")
	testkit.Equal(t, "class", Classify(err), retry.Permanent)
	testkit.Equal(t, "unanswered", isUnanswered(err), false)
}

// TestLateTokenIsReturned: the caller must be able to log it out.
func TestLateTokenIsReturned(t *testing.T) {
	t.Parallel()
	s, _ := newSessionServer(t, 0).session(t)
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/acl/login" {
			cancel()
		}
		w.Write([]byte(`{"AccessorID":"accessor-1","SecretID":"secret-1"}`))
	}))
	defer server.Close()
	s.Servers = func() (*api.Client, error) { return newClient(t, Options{Address: server.URL}), nil }
	if token, err := s.Login(ctx, LoginParams{Method: "iam"}); !errors.Is(err, context.Canceled) ||
		token.Secret != "secret-1" {
		t.Errorf("token = %#v, %v", token, err)
	}
}

// A CA file that another container of the task writes is no sign of other tasks that wait, for
// which a login would let them go first.
func TestTaskThatWaitedForAFileLogsInAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const late = 30 * time.Second
		start := time.Now()
		f := testkit.NewFleet()
		client := newClient(t, Options{Address: "10.0.0.1:8500", Wrap: f.Wrap})
		s := fleetSession(client)
		s.Servers = func() (*api.Client, error) {
			if time.Since(start) < late {
				return nil, fmt.Errorf("read the CA file: %w", fs.ErrNotExist)
			}
			return client, nil
		}
		if _, err := s.Login(t.Context(), LoginParams{Method: "iam"}); err != nil {
			t.Fatal(err)
		}
		if took, limit := time.Since(start), late+late/8+time.Second; took > limit {
			t.Errorf("logged in after %s, want %s at most", took, limit)
		}
	})
}

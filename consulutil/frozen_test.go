package consulutil

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// freeze holds a request until its client gives up, as a stopped process does.
func freeze(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // only then its end is noticed
	<-r.Context().Done()
}

func readChecks(c *api.Client) error {
	_, err := ReadChecks(c, "n", []string{"a"}, &api.QueryOptions{})
	return err
}

func awaitChange(c *api.Client) error {
	_, _, err := c.Catalog().Services(&api.QueryOptions{WaitIndex: 7})
	return err
}

func renewSession(c *api.Client) error {
	_, err := c.Raw().Write("/v1/session/renew/s", nil, nil, nil)
	return err
}

func TestFrozenServerDelaysOnlyRepeatableRequests(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do      func(*api.Client) error
		request string
		fails   bool
	}{
		"a read":           {readToken, "GET /v1/acl/token/self", false},
		"reading checks":   {readChecks, "PUT /v1/txn", false},
		"a registration":   {registerNode, "PUT /v1/catalog/register", false},
		"a renewal":        {renewSession, "PUT /v1/session/renew/s", false},
		"a blocking query": {awaitChange, "GET /v1/catalog/services", true},
		"a login":          {logIn, "POST /v1/acl/login", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, false, freeze, answer(200, `{"SecretID":"s"}`))
			limit := time.Minute
			want := []string{"1 " + tt.request, "2 " + tt.request}
			if tt.fails {
				limit, want = 2*attemptLimit, want[:1]
			}
			start := time.Now()
			err := tt.do(newClient(t, Options{Servers: f.inOrder(t, ServersOptions{}), Timeout: limit}))
			if took := time.Since(start); (err != nil) != tt.fails || took < attemptLimit || tt.fails && took < limit {
				t.Errorf("took %s: %v", took, err)
			}
			if got := f.requests(); !slices.Equal(got, want) {
				t.Errorf("asked %q, want %q", got, want)
			}
		})
	}
}

// The last server that is left has the rest of the request's time.
func TestOnlyServerMayBeSlow(t *testing.T) {
	t.Parallel()
	f := newFleet(t, false, nil, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(attemptLimit + attemptLimit/2):
			w.Write([]byte(`{"SecretID":"s"}`))
		case <-r.Context().Done():
		}
	})
	if err := readToken(
		newClient(t, Options{Servers: f.inOrder(t, ServersOptions{}), Timeout: time.Minute})); err != nil {
		t.Error(err)
	}
}

// An answer that begins in time may take long.
func TestLongAnswerIsNotCutOff(t *testing.T) {
	t.Parallel()
	f := newFleet(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		select {
		case <-time.After(attemptLimit + attemptLimit/2):
			w.Write([]byte(`{"SecretID":"s"}`))
		case <-r.Context().Done():
		}
	}, answer(200, `{}`))
	if err := readToken(
		newClient(t, Options{Servers: f.inOrder(t, ServersOptions{}), Timeout: time.Minute})); err != nil {
		t.Error(err)
	}
	if got := f.requests(); !slices.Equal(got, []string{"1 GET /v1/acl/token/self"}) {
		t.Errorf("asked %q", got)
	}
}

// Each request to a port of HTTPS names the setting, and is not repeated.
func TestPlainRequestToAnHTTPSPortNamesTheSetting(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*api.Client) error{"checks": readChecks, "login": logIn, "token": readToken} {
		f := newFleet(t, true, answer(200, `{}`))
		err := do(newClient(t, Options{Servers: f.inOrder(t, ServersOptions{})}))
		if Classify(err) != retry.Permanent ||
			!strings.Contains(err.Error(),
				"set consulServers.http.https to true, or http.port to the servers' HTTP port") {
			t.Errorf("%s: class %v: %v", name, Classify(err), err)
		}
	}
}

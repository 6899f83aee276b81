package broker

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/secret"
)

const (
	// outageTurn is how long an outage answers in one way.
	outageTurn = 25 * time.Second
	// revokedWithin is how long after an outage the tokens of stopped tasks may live.
	revokedWithin = 2 * time.Minute
)

// outage is the way to the backend's server, on which something else answers for some time: it
// refuses, lies or redirects, in turns.
type outage struct {
	begin, end time.Time
	server     http.HandlerFunc
	answers    []http.HandlerFunc
}

// RoundTrip implements http.RoundTripper.
func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, now := o.server, time.Now()
	if !now.Before(o.begin) && now.Before(o.end) {
		answer = o.answers[int(now.Sub(o.begin)/outageTurn)%len(o.answers)]
	}
	recorder := httptest.NewRecorder()
	answer(recorder, r)
	resp := recorder.Result()
	resp.Request = r
	return resp, nil
}

// affects reports whether revocations may be late because of the outage.
func (o *outage) affects(now time.Time) bool {
	return now.After(o.begin) && now.Before(o.end.Add(revokedWithin))
}

// strangers returns answers that a backend's server has not written, and refusals.
func strangers(denied http.HandlerFunc) []http.HandlerFunc {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	return []http.HandlerFunc{
		denied, status(http.StatusNoContent), status(http.StatusNotFound), http.NotFound,
		status(http.StatusServiceUnavailable), status(473),
		http.RedirectHandler("http://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect).ServeHTTP,
	}
}

// revoker makes the backend that revokes tokens: the real one, of Vault or of Consul, with the schedule's
// server. In schedules with long lives there is an outage, which ends revokedWithin before the end.
func (s *schedule) revoker() backend.Backend {
	o := &s.outage
	if s.long {
		o.begin = s.chance.start.Add(time.Minute + time.Duration(s.chance.n(int(faultTime/2))))
		o.end = s.chance.end.Add(quietTime - revokedWithin)
	}
	if s.backend.wraps {
		o.server = s.vault
		o.answers = append(strangers(func(w http.ResponseWriter, _ *http.Request) {
			vaultRefuses(w, 403, "permission denied")
		}),
			func(w http.ResponseWriter, r *http.Request) { vaultRefuses(w, 404, "no handler for route "+r.URL.Path) },
			func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>back soon</html>")) })
	} else {
		o.server = s.consul
		o.answers = strangers(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Permission denied", http.StatusForbidden)
		})
	}
	turn := s.chance.n(len(o.answers))
	o.answers = append(o.answers[turn:], o.answers[:turn]...)
	if s.backend.wraps {
		client, err := backend.NewVaultClient(backend.VaultOptions{Address: "https://vault", Transport: o})
		if err != nil {
			s.t.Fatal(err)
		}
		return &backend.VaultBackend{Client: client, Token: func() (secret.Value, error) {
			return secret.New("own"), nil
		}}
	}
	client, err := consulutil.NewClient(consulutil.Options{
		Address: "https://consul", Wrap: func(http.RoundTripper) http.RoundTripper { return o },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return &backend.ACLBackend{Client: client}
}

// vault answers as Vault to a revocation by accessor.
func (s *schedule) vault(w http.ResponseWriter, r *http.Request) {
	var in struct{ Accessor string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		s.errorf("%v", err)
	}
	switch {
	case !s.exists(in.Accessor):
		w.Write([]byte(`{"request_id": "r", "warnings": ["No token found with this accessor"]}`))
	case s.backend.Revoke(r.Context(), in.Accessor) != nil:
		vaultRefuses(w, http.StatusInternalServerError, "internal error")
	default:
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	}
}

func vaultRefuses(w http.ResponseWriter, status int, reason string) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string][]string{"errors": {reason}})
}

// consul answers as Consul to the deletion of a token, and to its read.
func (s *schedule) consul(w http.ResponseWriter, r *http.Request) {
	accessor := strings.TrimPrefix(r.URL.Path, "/v1/acl/token/")
	switch {
	case r.Method == http.MethodGet && s.exists(accessor):
		w.Write([]byte("{}"))
	case r.Method == http.MethodGet:
		http.Error(w, "token does not exist: ACL not found", http.StatusForbidden)
	case !s.exists(accessor):
		http.Error(w, "Cannot find token to delete", http.StatusNotFound)
	case s.backend.Revoke(r.Context(), accessor) != nil:
		http.Error(w, "rpc error making call: EOF", http.StatusInternalServerError)
	default:
		w.Write([]byte("true"))
	}
}

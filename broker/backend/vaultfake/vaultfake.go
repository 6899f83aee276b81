// Package vaultfake is a Vault server for tests: tokens, policies and response wrapping
// as far as the token broker uses them, with a clock that the test moves.
//
// It follows Vault's API documentation in what a client can observe: a wrapping token
// works once and until its time ends, which leaves the token inside alive; a wrapped
// token that was revoked is still unwrapped; a periodic token gets its period from each
// renewal; a policy need not exist to be in a token; without sudo create-orphan is
// refused. It is no proof of how a real Vault behaves.
//
// Start reading at: Start, then (*Server).handle.
package vaultfake

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a fake Vault server.
type Server struct {
	// URL is its address.
	URL string

	mu       sync.Mutex
	now      time.Time
	status   int
	policies map[string]bool
	tokens   map[string]*token
	wraps    map[string]wrapped
	requests []string
}

// token is a token of the fake; rights are the paths that its policies allow.
type token struct {
	TokenState
	rights []string
}

// TokenState is what the fake knows about a token.
type TokenState struct {
	Secret, Accessor, DisplayName string
	Policies                      []string
	Meta                          map[string]string
	Period                        time.Duration
	Expires                       time.Time
	Orphan                        bool
}

type wrapped struct {
	expires time.Time
	answer  any
}

// Start starts a server that ends with the test.
func Start(tb testing.TB) *Server {
	s := &Server{now: time.Now(), policies: map[string]bool{"default": true}, tokens: map[string]*token{}, wraps: map[string]wrapped{}}
	server := httptest.NewServer(http.HandlerFunc(s.handle))
	tb.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// AddPolicies creates policies.
func (s *Server) AddPolicies(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.policies[name] = true
	}
}

// NewToken returns a token without an end that may use the paths, in which a final *
// matches the rest.
func (s *Server) NewToken(rights ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(&token{TokenState: TokenState{DisplayName: "token"}, rights: rights}).Secret
}

// Advance moves the server's clock.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// Answer lets the server answer every request with the status, until it is 0.
func (s *Server) Answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// Requests returns method and path of each request so far.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Token returns the live token of an accessor.
func (s *Server) Token(accessor string) (TokenState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byAccessor(accessor)
	if t == nil {
		return TokenState{}, false
	}
	return t.TokenState, true
}

func (s *Server) add(t *token) *token {
	t.Secret, t.Accessor = "hvs."+rand.Text(), rand.Text()
	s.tokens[t.Secret] = t
	return t
}

func (s *Server) live(secret string) *token {
	t := s.tokens[secret]
	if t == nil || !t.Expires.IsZero() && !s.now.Before(t.Expires) {
		return nil
	}
	return t
}

func (s *Server) byAccessor(accessor string) *token {
	for secret, t := range s.tokens {
		if t.Accessor == accessor {
			return s.live(secret)
		}
	}
	return nil
}

// body is what requests carry.
type body struct {
	Accessor    string            `json:"accessor"`
	Policies    []string          `json:"policies"`
	Period      string            `json:"period"`
	Renewable   bool              `json:"renewable"`
	DisplayName string            `json:"display_name"`
	Meta        map[string]string `json:"meta"`
}

// refusal is an answer with errors.
type refusal struct {
	status int
	text   string
}

var denied = &refusal{http.StatusForbidden, "permission denied"}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/v1/")
	s.requests = append(s.requests, r.Method+" "+path)
	var b body
	if r.ContentLength > 0 {
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			refuse(w, &refusal{http.StatusBadRequest, err.Error()})
			return
		}
	}
	var answer any
	failed := &refusal{s.status, http.StatusText(s.status)}
	if s.status == 0 {
		answer, failed = s.serve(r, path, b)
	}
	switch {
	case failed != nil:
		refuse(w, failed)
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		json.NewEncoder(w).Encode(answer)
	}
}

func refuse(w http.ResponseWriter, r *refusal) {
	w.WriteHeader(r.status)
	json.NewEncoder(w).Encode(map[string]any{"errors": []string{r.text}})
}

// serve answers a request; nil is an answer without a body.
func (s *Server) serve(r *http.Request, path string, b body) (any, *refusal) {
	secret := r.Header.Get("X-Vault-Token")
	if r.Method+" "+path == "POST sys/wrapping/unwrap" {
		return s.unwrap(secret)
	}
	caller := s.live(secret)
	if caller == nil {
		return nil, denied
	}
	self := map[string]func(*token) (any, *refusal){"GET auth/token/lookup-self": s.lookup, "POST auth/token/renew-self": s.renew, "POST auth/token/revoke-self": s.revoke}
	if answer := self[r.Method+" "+path]; answer != nil {
		return answer(caller)
	}
	if !slices.ContainsFunc(caller.rights, func(right string) bool {
		prefix, ok := strings.CutSuffix(right, "*")
		return right == path || ok && strings.HasPrefix(path, prefix)
	}) {
		return nil, denied
	}
	switch operation := r.Method + " " + path; operation {
	case "POST auth/token/create-orphan":
		return s.create(r.Header.Get("X-Vault-Wrap-TTL"), b)
	case "POST auth/token/lookup-accessor", "POST auth/token/revoke-accessor":
		t := s.byAccessor(b.Accessor)
		if t == nil {
			return nil, &refusal{http.StatusForbidden, "1 error occurred:\n\t* invalid accessor\n\n"}
		}
		if operation == "POST auth/token/lookup-accessor" {
			return s.lookup(t)
		}
		delete(s.tokens, t.Secret)
		return nil, nil
	}
	name, isPolicy := strings.CutPrefix(path, "sys/policies/acl/")
	if !isPolicy || !s.policies[name] {
		return nil, &refusal{http.StatusNotFound, ""}
	}
	return map[string]any{"data": map[string]any{"name": name, "policy": ""}}, nil
}

func (s *Server) create(wrapTTL string, b body) (any, *refusal) {
	period, err := time.ParseDuration(cmp.Or(b.Period, "768h"))
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, err.Error()}
	}
	policies := append(slices.Clone(b.Policies), "default")
	slices.Sort(policies)
	t := s.add(&token{TokenState: TokenState{
		DisplayName: "token-" + b.DisplayName, Policies: slices.Compact(policies), Meta: b.Meta,
		Period: period, Expires: s.now.Add(period), Orphan: true,
	}})
	answer := s.auth(t)
	if wrapTTL == "" {
		return answer, nil
	}
	life, err := time.ParseDuration(wrapTTL + "s")
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, err.Error()}
	}
	handle := "hvs." + rand.Text()
	s.wraps[handle] = wrapped{s.now.Add(life), answer}
	return map[string]any{"wrap_info": map[string]any{
		"token": handle, "ttl": int(life.Seconds()), "creation_time": s.now.Format(time.RFC3339Nano),
		"creation_path": "auth/token/create-orphan", "wrapped_accessor": t.Accessor,
	}}, nil
}

func (s *Server) unwrap(handle string) (any, *refusal) {
	w, ok := s.wraps[handle]
	delete(s.wraps, handle)
	if !ok || !s.now.Before(w.expires) {
		return nil, &refusal{http.StatusBadRequest, "wrapping token is not valid or does not exist"}
	}
	return w.answer, nil
}

func (s *Server) renew(t *token) (any, *refusal) {
	if t.Period == 0 {
		return nil, &refusal{http.StatusBadRequest, "lease is not renewable"}
	}
	t.Expires = s.now.Add(t.Period)
	return s.auth(t), nil
}

func (s *Server) revoke(t *token) (any, *refusal) {
	delete(s.tokens, t.Secret)
	return nil, nil
}

func (s *Server) auth(t *token) any {
	return map[string]any{"auth": map[string]any{
		"client_token": t.Secret, "accessor": t.Accessor, "policies": t.Policies, "metadata": t.Meta,
		"lease_duration": s.left(t), "renewable": t.Period > 0, "orphan": t.Orphan,
	}}
}

func (s *Server) lookup(t *token) (any, *refusal) {
	return map[string]any{"data": map[string]any{
		"accessor": t.Accessor, "policies": t.Policies, "display_name": t.DisplayName, "meta": t.Meta, "orphan": t.Orphan,
		"ttl": s.left(t), "period": int(t.Period.Seconds()), "renewable": t.Period > 0,
	}}, nil
}

func (s *Server) left(t *token) int {
	if t.Expires.IsZero() {
		return 0
	}
	return int(t.Expires.Sub(s.now).Seconds())
}

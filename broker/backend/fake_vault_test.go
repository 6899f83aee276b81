package backend_test

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

// fakeVault is a Vault server: tokens, policies and response wrapping as far as the token
// broker uses them, with a clock that the test moves.
//
// It follows Vault's API documentation in what a client can observe: a wrapping token
// works once and until its time ends, which leaves the token inside alive; a wrapped
// token that was revoked is still unwrapped; a periodic token gets its period from each
// renewal; a policy need not exist to be in a token; without sudo create-orphan is
// refused. It is no proof of how a real Vault behaves.
type fakeVault struct {
	// URL is its address.
	URL string

	mu       sync.Mutex
	now      time.Time
	status   int
	foreign  http.HandlerFunc // answers in place of Vault, if not nil
	policies map[string]bool
	tokens   map[string]*fakeToken
	wraps    map[string]wrapped
	requests []string
}

// fakeToken is a token of the fake; rights are the paths that its policies allow.
type fakeToken struct {
	tokenState
	rights []string
}

// tokenState is what the fake knows about a token.
type tokenState struct {
	Secret, Accessor, DisplayName string
	Policies                      []string
	Meta                          map[string]string
	Period                        time.Duration
	Expires                       time.Time
	Orphan                        bool
}

type wrapped struct {
	expires time.Time
	answer  map[string]any
}

// startVault starts a server that ends with the test.
func startVault(tb testing.TB) *fakeVault {
	s := &fakeVault{now: time.Now(), policies: map[string]bool{"default": true}, tokens: map[string]*fakeToken{}, wraps: map[string]wrapped{}}
	server := httptest.NewServer(http.HandlerFunc(s.handle))
	tb.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// AddPolicies creates policies.
func (s *fakeVault) AddPolicies(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.policies[name] = true
	}
}

// NewToken returns a token without an end that may use the paths, in which a final *
// matches the rest.
func (s *fakeVault) NewToken(rights ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(&fakeToken{tokenState: tokenState{DisplayName: "token"}, rights: rights}).Secret
}

// Advance moves the server's clock.
func (s *fakeVault) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// Answer lets the server answer every request with the status, until it is 0.
func (s *fakeVault) Answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// AnswerAs lets something that is not Vault answer every request, until it is nil.
func (s *fakeVault) AnswerAs(foreign http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foreign = foreign
}

// Requests returns method and path of each request so far.
func (s *fakeVault) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Token returns the live token of an accessor.
func (s *fakeVault) Token(accessor string) (tokenState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byAccessor(accessor)
	if t == nil {
		return tokenState{}, false
	}
	return t.tokenState, true
}

func (s *fakeVault) add(t *fakeToken) *fakeToken {
	t.Secret, t.Accessor = "hvs."+rand.Text(), rand.Text()
	s.tokens[t.Secret] = t
	return t
}

func (s *fakeVault) live(secret string) *fakeToken {
	t := s.tokens[secret]
	if t == nil || !t.Expires.IsZero() && !s.now.Before(t.Expires) {
		return nil
	}
	return t
}

func (s *fakeVault) byAccessor(accessor string) *fakeToken {
	for secret, t := range s.tokens {
		if t.Accessor == accessor {
			return s.live(secret)
		}
	}
	return nil
}

// vaultBody is what requests carry.
type vaultBody struct {
	Accessor    string            `json:"accessor"`
	Policies    []string          `json:"policies"`
	Period      string            `json:"period"`
	Renewable   bool              `json:"renewable"`
	DisplayName string            `json:"display_name"`
	Meta        map[string]string `json:"meta"`
}

// vaultRefusal is an answer with errors.
type vaultRefusal struct {
	status int
	text   string
}

var denied = &vaultRefusal{http.StatusForbidden, "permission denied"}

func (s *fakeVault) handle(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/v1/")
	s.requests = append(s.requests, r.Method+" "+path)
	if s.foreign != nil {
		s.foreign(w, r)
		return
	}
	var b vaultBody
	if r.ContentLength > 0 {
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			refuseVault(w, &vaultRefusal{http.StatusBadRequest, err.Error()})
			return
		}
	}
	var answer map[string]any
	failed := &vaultRefusal{s.status, http.StatusText(s.status)}
	if s.status == 0 {
		answer, failed = s.serve(r, path, b)
	}
	switch {
	case failed != nil:
		refuseVault(w, failed)
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		answer["request_id"] = rand.Text()
		json.NewEncoder(w).Encode(answer)
	}
}

func refuseVault(w http.ResponseWriter, r *vaultRefusal) {
	errs := []string{}
	if r.text != "" {
		errs = append(errs, r.text)
	}
	w.WriteHeader(r.status)
	json.NewEncoder(w).Encode(map[string]any{"errors": errs})
}

// serve answers a request; nil is an answer without a body.
func (s *fakeVault) serve(r *http.Request, path string, b vaultBody) (map[string]any, *vaultRefusal) {
	secret := r.Header.Get("X-Vault-Token")
	if r.Method+" "+path == "POST sys/wrapping/unwrap" {
		return s.unwrap(secret)
	}
	caller := s.live(secret)
	if caller == nil {
		return nil, denied
	}
	self := map[string]func(*fakeToken) (map[string]any, *vaultRefusal){"GET auth/token/lookup-self": s.lookup, "POST auth/token/renew-self": s.renew, "POST auth/token/revoke-self": s.revoke}
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
		switch {
		case t == nil && operation == "POST auth/token/revoke-accessor":
			return map[string]any{"warnings": []string{"No token found with this accessor"}}, nil
		case t == nil:
			return nil, &vaultRefusal{http.StatusForbidden, "1 error occurred:\n\t* invalid accessor\n\n"}
		case operation == "POST auth/token/lookup-accessor":
			return s.lookup(t)
		}
		return s.revoke(t)
	}
	name, isPolicy := strings.CutPrefix(path, "sys/policies/acl/")
	if !isPolicy {
		return nil, &vaultRefusal{http.StatusNotFound, "no handler for route \"" + path + "\". route entry not found."}
	}
	name = strings.ToLower(strings.TrimSpace(name))
	if !s.policies[name] {
		return nil, &vaultRefusal{http.StatusNotFound, ""}
	}
	return map[string]any{"data": map[string]any{"name": name, "policy": ""}}, nil
}

func (s *fakeVault) create(wrapTTL string, b vaultBody) (map[string]any, *vaultRefusal) {
	period, err := time.ParseDuration(cmp.Or(b.Period, "768h"))
	if err != nil {
		return nil, &vaultRefusal{http.StatusBadRequest, err.Error()}
	}
	policies := append(slices.Clone(b.Policies), "default")
	slices.Sort(policies)
	t := s.add(&fakeToken{tokenState: tokenState{
		DisplayName: "token-" + b.DisplayName, Policies: slices.Compact(policies), Meta: b.Meta,
		Period: period, Expires: s.now.Add(period), Orphan: true,
	}})
	answer := s.auth(t)
	if wrapTTL == "" {
		return answer, nil
	}
	life, err := time.ParseDuration(wrapTTL + "s")
	if err != nil {
		return nil, &vaultRefusal{http.StatusBadRequest, err.Error()}
	}
	handle := "hvs." + rand.Text()
	s.wraps[handle] = wrapped{s.now.Add(life), answer}
	return map[string]any{"wrap_info": map[string]any{
		"token": handle, "ttl": int(life.Seconds()), "creation_time": s.now.Format(time.RFC3339Nano),
		"creation_path": "auth/token/create-orphan", "wrapped_accessor": t.Accessor,
	}}, nil
}

func (s *fakeVault) unwrap(handle string) (map[string]any, *vaultRefusal) {
	w, ok := s.wraps[handle]
	delete(s.wraps, handle)
	if !ok || !s.now.Before(w.expires) {
		return nil, &vaultRefusal{http.StatusBadRequest, "wrapping token is not valid or does not exist"}
	}
	return w.answer, nil
}

func (s *fakeVault) renew(t *fakeToken) (map[string]any, *vaultRefusal) {
	if t.Period == 0 {
		return nil, &vaultRefusal{http.StatusBadRequest, "lease is not renewable"}
	}
	t.Expires = s.now.Add(t.Period)
	return s.auth(t), nil
}

func (s *fakeVault) revoke(t *fakeToken) (map[string]any, *vaultRefusal) {
	delete(s.tokens, t.Secret)
	return nil, nil
}

func (s *fakeVault) auth(t *fakeToken) map[string]any {
	return map[string]any{"auth": map[string]any{
		"client_token": t.Secret, "accessor": t.Accessor, "policies": t.Policies, "metadata": t.Meta,
		"lease_duration": s.left(t), "renewable": t.Period > 0, "orphan": t.Orphan,
	}}
}

func (s *fakeVault) lookup(t *fakeToken) (map[string]any, *vaultRefusal) {
	return map[string]any{"data": map[string]any{
		"accessor": t.Accessor, "policies": t.Policies, "display_name": t.DisplayName, "meta": t.Meta, "orphan": t.Orphan,
		"ttl": s.left(t), "period": int(t.Period.Seconds()), "renewable": t.Period > 0,
	}}, nil
}

func (s *fakeVault) left(t *fakeToken) int {
	if t.Expires.IsZero() {
		return 0
	}
	return int(t.Expires.Sub(s.now).Seconds())
}

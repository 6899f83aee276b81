package vault

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Front stands before a server as a load balancer or a standby node does: it passes
// requests on, unless it is to answer itself.
type Front struct {
	// URL is its address.
	URL string

	server http.Handler // what it stands before

	mu     sync.Mutex
	answer http.HandlerFunc
}

// NewFront starts a front of the server that ends with the test.
func NewFront(t testing.TB, s *Server) *Front {
	t.Helper()
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	f := &Front{server: httputil.NewSingleHostReverseProxy(target)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		answer := f.answer
		f.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		f.server.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.URL = server.URL
	return f
}

// AnswerAs lets the front answer every request itself, until it is nil.
func (f *Front) AnswerAs(answer http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// Answer lets the front answer every request with the status, in Vault's form.
func (f *Front) Answer(status int) {
	f.AnswerAs(func(w http.ResponseWriter, _ *http.Request) { Refuse(w, status, http.StatusText(status)) })
}

// RefuseAt lets the front refuse requests below a path, and pass the others on.
func (f *Front) RefuseAt(path string, status int, text string) {
	f.AnswerAs(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/"+path) {
			Refuse(w, status, text)
			return
		}
		f.server.ServeHTTP(w, r)
	})
}

// Refuse writes an answer with errors, as Vault does.
func Refuse(w http.ResponseWriter, status int, texts ...string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string][]string{"errors": append([]string{}, texts...)})
}

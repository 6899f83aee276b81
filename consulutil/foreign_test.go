package consulutil

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// A load balancer that has no server, a page of maintenance, a redirect to a login: none of them knows
// whether a token, a key or a service exists.
func TestAnswerThatIsNotConsulsProvesNothing(t *testing.T) {
	t.Parallel()
	calls := map[string]func(*api.Client) error{
		"delete a token": func(c *api.Client) error {
			return DeleteToken(t.Context(), c, strangeToken,
				&api.WriteOptions{})
		},
		"log out":       func(c *api.Client) error { return Logout(t.Context(), c, strangeToken) },
		"read a key":    func(c *api.Client) error { _, _, err := c.KV().Get("k", nil); return err },
		"list keys":     func(c *api.Client) error { _, _, err := c.KV().List("k", nil); return err },
		"read a policy": func(c *api.Client) error { _, _, err := c.ACL().PolicyReadByName("p", nil); return err },
		"deregister":    func(c *api.Client) error { return c.Agent().ServiceDeregister("s") },
		"write keys":    func(c *api.Client) error { _, _, _, err := c.Txn().Txn(api.TxnOps{}, nil); return err },
		"renew session": func(c *api.Client) error { _, _, err := c.Session().Renew("s", nil); return err },
	}
	for name, answer := range map[string]http.HandlerFunc{
		"404 without a body":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"404 with a page":     http.NotFound,
		"temporary redirect":  http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect).ServeHTTP,
		"redirect to a login": http.RedirectHandler("/login", http.StatusFound).ServeHTTP,
		"redirect to itself": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusMovedPermanently)
		},
		"not permitted at all": func(w http.ResponseWriter,
			_ *http.Request) {
			http.Error(w, "blocked", http.StatusForbidden)
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" || r.URL.Path == "/login" {
				t.Errorf("%s was followed", name)
			}
			answer(w, r)
		}))
		c := newClient(t, Options{Address: server.URL})
		for what, call := range calls {
			err := call(c)
			if err == nil {
				t.Errorf("%s: %s: success", name, what)
			}
			if class := Classify(err); class == retry.Gone {
				t.Errorf("%s: %s: %v of class %v", name, what, err, class)
			}
		}
		server.Close()
	}
	page := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
	t.Cleanup(page.Close)
	for _, path := range []string{"", "/behind/a/prefix"} {
		for _, what := range []string{"delete a token", "log out", "write keys"} {
			if err := calls[what](newClient(t, Options{Address: page.URL + path})); err == nil ||
				Classify(err) != retry.NotYet {
				t.Errorf("a page of maintenance at %q: %s: %v, want an error that is retried", path, what, err)
			}
		}
	}
}

// Real servers, with and without ACLs, give answers that count.
func TestAnswersOfConsulCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*api.Client{"with ACLs": client(t, secured, testkit.ManagementToken),
		"without": client(t, open, "")} {
		if pair, _, err := c.KV().Get("none", nil); err != nil || pair != nil {
			t.Errorf("%s: a key that does not exist: %v, %v", name, pair, err)
		}
		if err := c.Agent().ServiceDeregister("none"); Classify(err) != retry.Gone {
			t.Errorf("%s: a service that does not exist: %v", name, err)
		}
		if _, err := c.Raw().Query("/v1/none", nil, nil); Status(err) != http.StatusNotFound {
			t.Errorf("%s: a path that does not exist: %v", name, err)
		}
	}
}

func TestDeleteTokenConfirmsThatConsulHasNone(t *testing.T) {
	t.Parallel()
	admin := client(t, secured, testkit.ManagementToken)
	token, _, err := admin.ACL().TokenCreate(&api.ACLToken{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = DeleteToken(t.Context(), client(t, secured, strangeToken), token.AccessorID, &api.WriteOptions{})
	if !UnknownToken(err) {
		t.Errorf("by a token that does not exist: %v", err)
	}
	for range 2 {
		if err := DeleteToken(t.Context(), admin, token.AccessorID, &api.WriteOptions{}); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := admin.ACL().TokenRead(token.AccessorID, nil); !NoToken(err) {
		t.Errorf("the token is still there: %v", err)
	}
}

// A server that is starting does not know the tokens of its log, unless the read is consistent.
func TestDeleteTokenRetriesWhileTheServerStarts(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(defaultPolicyHeader, "deny")
		switch {
		case r.Method == http.MethodDelete:
			http.Error(w, "Cannot find token to delete", http.StatusNotFound)
		case !r.URL.Query().Has("consistent"):
			t.Errorf("request = %s %s: want a consistent read", r.Method, r.URL)
		default:
			io.WriteString(w, `{"AccessorID": "a"}`)
		}
	}))
	t.Cleanup(server.Close)
	err := DeleteToken(t.Context(), newClient(t, Options{Address: server.URL}), "a", &api.WriteOptions{})
	testkit.ErrorContains(t, err, "starting")
	testkit.Equal(t, "class", Classify(err), retry.NotYet)
}

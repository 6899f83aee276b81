package metadata

import (
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
)

// Timeout is the ECS agent's read and write timeout, for the http.Server that
// serves a TaskHandler.
const Timeout = 5 * time.Second

// Task holds the handlers of TaskHandler; nil ones have no route.
type Task struct {
	// Metadata serves /v3/ and /v4/.
	Metadata http.Handler
	// Credentials serves /v2/credentials/.
	Credentials http.Handler
	// Agent serves /api/, the value of ECS_AGENT_URI.
	Agent http.Handler
}

// TaskHandler returns everything at 169.254.170.2:80, with the rate limit.
func TaskHandler(t Task) http.Handler {
	routes := []struct {
		prefix  string
		handler http.Handler
	}{
		{"/v4/", t.Metadata},
		{"/v3/", t.Metadata},
		{iam.CredentialsPath, t.Credentials},
		{"/api/", t.Agent},
	}
	return cleaned(throttle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, route := range routes {
			if route.handler != nil && strings.HasPrefix(r.URL.Path, route.prefix) {
				route.handler.ServeHTTP(w, r)
				return
			}
		}
		http.NotFound(w, r)
	})))
}

// cleaned redirects //, . and .. to the clean path before anything counts.
func cleaned(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		clean := path.Clean("/" + r.URL.Path)
		if strings.HasSuffix(r.URL.Path, "/") && clean != "/" {
			clean += "/" // a trailing slash stays, and has no route
		}
		if clean == r.URL.Path {
			next.ServeHTTP(w, r)
			return
		}
		u := *r.URL
		u.Path, u.RawPath = clean, ""
		w.Header().Set("Location", u.RequestURI())
		w.WriteHeader(http.StatusMovedPermanently)
	})
}

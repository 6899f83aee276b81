package metadata

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// Options are the handler's sources. Lookup is needed, the others are not.
type Options struct {
	// Lookup returns the task that the container with this endpoint ID belongs
	// to, as it is now, and false for an ID of no task. It is called once a
	// request, concurrently.
	Lookup func(endpointID string) (Snapshot, bool)
	// Stats returns a container's figures, nil while there are none.
	Stats func(container string) *Stats
}

// New returns the handler of /v4/ and /v3/. It answers any method, as the ECS
// agent does.
func New(o Options) http.Handler { return &handler{options: o} }

type handler struct{ options Options }

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, id, what, ok := splitPath(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	status, body := h.answer(v, id, what, iam.ConditionOf(r))
	iam.JSON(w, status, body)
}

// Fail answers as the ECS agent fails: a JSON string.
func Fail(w http.ResponseWriter, taskARN string, status int) {
	iam.JSON(w, status, fmt.Sprintf("Unable to generate metadata for v4 task: '%s'", taskARN))
}

// The agent's answer for an unknown endpoint ID.
const (
	noTask      = "unable to get task arn from request: unable to get task Arn from v3 endpoint ID"
	noContainer = "unable to get container ID from request: unable to get docker ID from v3 endpoint ID"
)

func (h *handler) answer(v version, id, what string, c iam.Condition) (status int, body any) {
	m, known := h.options.Lookup(id)
	m = m.under(c)
	name, facts, listed := m.Facts.container(id)
	known = known && listed
	view, there := m.View.Container(name)
	there = known && there
	switch {
	case !known && what != "":
		return missing(v, id, what, noTask)
	case !there && (what == "" || what == "stats"):
		return missing(v, id, what, noContainer)
	case what == "":
		return http.StatusOK, m.container(view, facts, v)
	case what == "stats" && view.KnownStatus != scheduler.StatusRunning:
		return unavailable(v, what), "Unable to get container stats for: " + facts.DockerID
	case what == "stats":
		return http.StatusOK, entry(h.stats(m, name, facts), v)
	case what == "task/stats":
		return http.StatusOK, h.allStats(m, v)
	}
	return http.StatusOK, m.task(v) // taskWithTags, too: no task has tags here
}

// missing answers for an endpoint ID that is unknown.
func missing(v version, id, what, reason string) (status int, body string) {
	status = http.StatusNotFound
	if v == v3 { // the agent's older handlers know no 404
		status = unavailable(v, what)
	}
	return status, fmt.Sprintf("V%d %s handler: %s: %s", v, handlerName(what), reason, id)
}

// unavailable returns the status of what exists and cannot be told.
func unavailable(v version, what string) int {
	if v == v3 && strings.HasSuffix(what, "stats") {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

func handlerName(what string) string {
	switch what {
	case "":
		return "container metadata"
	case "stats":
		return "container stats"
	case "task/stats":
		return "task stats"
	}
	return "task metadata"
}

// splitPath takes /v4/<id>[/<what>] apart; ok is false for a path that has no
// route, a trailing slash among them.
func splitPath(path string) (v version, id, what string, ok bool) {
	if rest, is := strings.CutPrefix(path, "/v4/"); is {
		v, path = v4, rest
	} else if rest, is := strings.CutPrefix(path, "/v3/"); is {
		v, path = v3, rest
	} else {
		return 0, "", "", false
	}
	id, what, slash := strings.Cut(path, "/")
	switch what {
	case "":
		return v, id, what, !slash
	case "stats", "task", "taskWithTags", "task/stats":
		return v, id, what, true
	}
	return 0, "", "", false
}

func (h *handler) stats(m Snapshot, name string, facts ContainerFacts) *Stats {
	view, ok := m.View.Container(name)
	if h.options.Stats == nil || !ok || view.KnownStatus != scheduler.StatusRunning {
		return nil
	}
	s := h.options.Stats(name)
	if s == nil {
		return nil
	}
	named := *s
	named.Name, named.ID = name, facts.DockerID
	return &named
}

func (h *handler) allStats(m Snapshot, v version) map[string]any {
	all := map[string]any{}
	for name, facts := range m.Facts.Containers {
		all[facts.DockerID] = entry(h.stats(m, name, facts), v)
	}
	return all
}

// entry returns what the version shows of a container: null without figures in V3, {} in V4.
func entry(s *Stats, v version) any {
	switch {
	case s != nil:
		return s
	case v == v3:
		return nil
	}
	return struct{}{}
}

// Serve serves with the ECS agent's timeouts until close, which cuts the connections and returns when the listener is
// closed and no goroutine accepts any more.
func Serve(l net.Listener, h http.Handler) (close func() error) {
	server := &http.Server{Handler: h, ReadTimeout: Timeout, WriteTimeout: Timeout}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) }) // what ends it is close
	return func() error {
		err := server.Close()
		serving.Wait()
		return err
	}
}

// Host returns a listener's address as the host of an http URL.
func Host(l net.Listener) string { return strings.TrimSuffix(l.Addr().String(), ":80") }

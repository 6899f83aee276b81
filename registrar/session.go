package registrar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// sessionTTL is half of the time after which Consul ends a session that is not
	// renewed; that is TTL, as for a check of an agent.
	sessionTTL = ttl / 2
	// creationAwait is how long the first passing status waits for the session, so that
	// one write has both.
	creationAwait = time.Second
)

// checkSession is the session that the workload's session checks depend on: Consul makes them
// critical when nothing renews it, and passing when another one of the same name is
// created. A renewal restarts a timer of the leader and is no write. Only keeper creates and
// renews it; Set writes the checks.
type checkSession struct {
	client *api.Client
	// wanted is closed when a check passes, and tried when the first creation has ended.
	wanted, tried chan struct{}

	mu       sync.Mutex
	held     bool   // keeper runs
	asked    bool   // wanted is closed
	id, name string // the ID is empty without a session
	// bound reports that the checks are in the catalog with the name.
	bound bool
	// recheck is when the checks are to be read again, zero for at their time.
	recheck time.Time
	// reason is why the checks keep their status without this process.
	reason error
	// writing is the shortest time that a write took.
	writing time.Duration
}

func newCheckSession(client *api.Client) *checkSession {
	return &checkSession{client: client, wanted: make(chan struct{}), tried: make(chan struct{})}
}

// await requests the session with the first passing check, and waits a moment for it.
func (s *checkSession) await(ctx context.Context) {
	s.mu.Lock()
	first := s.held && !s.asked
	s.asked = s.asked || s.held
	s.mu.Unlock()
	if !first {
		return
	}
	close(s.wanted)
	timer := time.NewTimer(creationAwait)
	defer timer.Stop()
	select {
	case <-s.tried:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// unwritten returns the session checks that the catalog does not have yet.
func (s *checkSession) unwritten(w workload.Workload) api.HealthChecks {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == "" || s.bound {
		return nil
	}
	return sessionEntries(w, s.name)
}

// written notes a write that took that long and had these session checks.
func (s *checkSession) written(took time.Duration, checks api.HealthChecks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = shortest(s.writing, took)
	if len(checks) > 0 && checks[0].Definition.SessionName == s.name {
		s.bound = true
	}
}

// rechecked notes that the checks are read.
func (s *checkSession) rechecked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recheck = time.Time{}
}

// verify compares the session checks with what the catalog has of them.
func (s *checkSession) verify(w workload.Workload, known map[string]health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == "" {
		return
	}
	for _, id := range sessionCheckIDs(w) {
		s.bound = s.bound && known[id].status == api.HealthPassing
	}
}

// due reports whether the checks are to be read now.
func (s *checkSession) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.recheck.IsZero() && !time.Now().Before(s.recheck)
}

func (s *checkSession) state() (id, name string, bound bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id, s.name, s.bound
}

func (s *checkSession) unbound() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// end destroys the session, which Consul would otherwise do some time later.
func (s *checkSession) end(ctx context.Context, token string, w workload.Workload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == "" {
		return
	}
	if _, err := s.client.Session().Destroy(s.id, writeOptions(ctx, token, w)); err == nil {
		s.id = ""
	}
}

// unsupportedError reports servers without session checks.
type unsupportedError struct{ reason string }

func (e *unsupportedError) Error() string { return e.reason }

// refused reports whether no session can be had, whatever the attempts: the servers do
// not know session checks, the token lacks the rule, or session_ttl_min is too high.
func refused(err error) bool {
	_, unsupported := errors.AsType[*unsupportedError](err)
	reason := consulutil.Reason(err)
	return unsupported || consulutil.Status(err) == http.StatusForbidden && strings.Contains(reason, "session:write") ||
		strings.Contains(reason, "Invalid Session TTL")
}

// supported returns an unsupportedError when a server does not know session checks. Each
// server applies the end of a session to its own copy of the catalog, so all must. The
// version of an agent may not be asked for with a task's token, but nodes may be read.
func (s *checkSession) supported(ctx context.Context, token string) error {
	servers, _, err := s.client.Catalog().Service("consul", "",
		(&api.QueryOptions{Token: token, AllowStale: true}).WithContext(ctx))
	if err != nil {
		return fmt.Errorf("read versions of the Consul servers: %w", err)
	}
	if len(servers) == 0 {
		return &unsupportedError{"the catalog shows no Consul server, whose version must be known"}
	}
	for _, s := range servers {
		if v := s.NodeMeta["consul-version"]; !hasSessionChecks(v) {
			return &unsupportedError{fmt.Sprintf("Consul server %s has version %s; checks that depend on a session "+
				"need 1.21", s.Node, cmp.Or(v, "unknown"))}
		}
	}
	return nil
}

// hasSessionChecks reports whether a version of Consul has them: 1.21.0 and later.
func hasSessionChecks(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d.", &major, &minor)
	return err == nil && (major > 1 || major == 1 && minor >= 21)
}

// sessionEntries returns a check for each service of the workload, passing until the session
// of that name ends.
func sessionEntries(w workload.Workload, name string) api.HealthChecks {
	var checks api.HealthChecks
	for _, id := range serviceIDs(w) {
		checks = append(checks, &api.HealthCheck{
			Node:       w.Node,
			CheckID:    workload.SessionCheckID(id),
			Name:       workload.SessionCheckName,
			Status:     api.HealthPassing,
			Notes:      "Passing while health-sync of the task runs and reaches the Consul servers.",
			ServiceID:  id,
			Type:       "session",
			Definition: api.HealthCheckDefinition{SessionName: name},
			Namespace:  w.Namespace,
			Partition:  w.Partition,
		})
	}
	return checks
}

func sessionCheckIDs(w workload.Workload) []string {
	ids := serviceIDs(w)
	for i, id := range ids {
		ids[i] = workload.SessionCheckID(id)
	}
	return ids
}

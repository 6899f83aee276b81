package registrar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// sessionTTL is half of the time after which Consul ends a session that is not
	// renewed; that is TTL, as for a check of an agent.
	sessionTTL = ttl / 2
	// sessionRenewal is the least time between two renewals.
	sessionRenewal = sessionTTL / 3
	// sessionRetry is how long a task runs without a session after a refusal: the
	// servers may be upgraded, and the permission given.
	sessionRetry = 5 * time.Minute
)

// lease is the session of this process, which its workload's session checks depend on:
// Consul makes them critical when nothing renews it. A renewal restarts a timer of the
// leader and is no write. It is not safe for concurrent use.
type lease struct {
	client *api.Client

	id, name string // the ID is empty without a session
	renewed  time.Time
	// bound reports that the checks are in the catalog with the name.
	bound bool
	// reason is why there is no session, nil while there is one; after a refusal, retry
	// is when to ask for one again.
	reason error
	retry  time.Time
}

// verify compares the session checks with what the catalog has of them.
func (l *lease) verify(w workload.Workload, known map[string]health) {
	for _, id := range sessionCheckIDs(w) {
		l.bound = l.bound && known[id].status == api.HealthPassing
	}
}

// hold renews the session, or begins one. It returns the checks that are to be written,
// if any. A refusal is no error: the task continues without a session and without checks
// that depend on one, and asks again later.
func (l *lease) hold(ctx context.Context, token string, w workload.Workload) (api.HealthChecks, error) {
	if l.id == "" && time.Now().Before(l.retry) {
		return nil, nil
	}
	err := l.renew(ctx, token, w)
	if err == nil && l.id == "" {
		err = l.begin(ctx, token, w)
	}
	if refused(err) {
		l.id, l.reason = "", err
		if err := l.drop(ctx, token, w); err != nil {
			return nil, err
		}
		l.retry = time.Now().Add(sessionRetry)
		return nil, nil
	}
	if err != nil && l.id == "" {
		l.reason = err
	}
	if err != nil || l.bound {
		return nil, err
	}
	return sessionEntries(w, l.name), nil
}

// renew leaves no ID of a session that Consul has ended. The client's Renew hides the
// status of an answer.
func (l *lease) renew(ctx context.Context, token string, w workload.Workload) error {
	if l.id == "" || time.Since(l.renewed) < sessionRenewal {
		return nil
	}
	_, err := l.client.Raw().Write("/v1/session/renew/"+l.id, nil, nil, writeOptions(ctx, token, w))
	switch {
	case consulutil.Status(err) == http.StatusNotFound:
		l.id = ""
		return nil
	case err != nil:
		return fmt.Errorf("renew session of %q: %w", w.ID, err)
	}
	l.renewed = time.Now()
	return nil
}

// begin creates a session. Each has a unique name: one that was created by a request
// without an answer, or by a former process, ends some time, and its name's checks become
// critical then.
func (l *lease) begin(ctx context.Context, token string, w workload.Workload) error {
	if err := l.supported(ctx, token); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%08x", w.ID, rand.Uint32())
	id, _, err := l.client.Session().CreateNoChecks(&api.SessionEntry{Name: name, Node: w.Node, TTL: sessionTTL.String()}, writeOptions(ctx, token, w))
	if err != nil {
		return fmt.Errorf("create session of %q: %w", w.ID, err)
	}
	l.id, l.name, l.renewed, l.bound, l.reason = id, name, time.Now(), false, nil
	return nil
}

// end destroys the session, which Consul would otherwise do some time later.
func (l *lease) end(ctx context.Context, token string, w workload.Workload) {
	if l.id == "" {
		return
	}
	if _, err := l.client.Session().Destroy(l.id, writeOptions(ctx, token, w)); err == nil {
		l.id = ""
	}
}

// drop removes the session checks, also a former process's: without a session they would
// stay critical, or become so.
func (l *lease) drop(ctx context.Context, token string, w workload.Workload) error {
	found, err := consulutil.ReadChecks(l.client, w.Node, sessionCheckIDs(w), query(ctx, token, w))
	errs := []error{err}
	for _, check := range found {
		errs = append(errs, deregister(ctx, l.client, token, w, api.CatalogDeregistration{CheckID: check.CheckID}))
	}
	return errors.Join(errs...)
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
func (l *lease) supported(ctx context.Context, token string) error {
	servers, _, err := l.client.Catalog().Service("consul", "", (&api.QueryOptions{Token: token, AllowStale: true}).WithContext(ctx))
	if err != nil {
		return fmt.Errorf("read versions of the Consul servers: %w", err)
	}
	if len(servers) == 0 {
		return &unsupportedError{"the catalog shows no Consul server, whose version must be known"}
	}
	for _, s := range servers {
		if v := s.NodeMeta["consul-version"]; !hasSessionChecks(v) {
			return &unsupportedError{fmt.Sprintf("Consul server %s has version %s; checks that depend on a session need 1.21", s.Node, cmp.Or(v, "unknown"))}
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

// sessionEntries are a check for each service of the workload, passing until the session
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

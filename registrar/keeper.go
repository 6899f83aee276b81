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
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// renewalPause is the time between two renewals: an outage of 15 s ends no session, also
	// when a renewal hangs until renewalLimit. After a failure it is shorter, because the
	// servers may be back.
	renewalPause, renewalRepeat = 5 * time.Second, 2 * time.Second
	// renewalLimit bounds one renewal.
	renewalLimit = 5 * time.Second
	// sessionRetry is how long a task runs without a session after a refusal: the
	// servers may be upgraded, and the permission given.
	sessionRetry = 5 * time.Minute

	// creationLimit is how long a creation may wait for its answer, with those of all
	// tasks that lost their sessions before it.
	creationLimit = time.Minute
	// creationBase and creationMax bound the pauses after creations that failed.
	creationBase, creationMax = 5 * time.Second, time.Minute
	// lookPause is the time between two looks for a session whose creation was not
	// answered: it lives for twice that. lookLimit is when its creation is no longer
	// expected.
	lookPause, lookLimit = 15 * time.Second, time.Minute
	// recheckPause is how long after a session was replaced its checks are read.
	recheckPause = 2 * time.Second

	// taskCost is what each task of the cluster adds to the creation of a session: Consul
	// looks through all checks of the node (docs/HEALTH.md).
	taskCost = 2 * time.Microsecond
)

// keeper creates and renews the session. It belongs to the goroutine of Hold.
type keeper struct {
	session *checkSession
	log     hclog.Logger
	w       workload.Workload
	causes  retry.Causes

	// renewed is when the session was last known to live, made when it was created; early are
	// the sessions in a row that ended before their time.
	renewed, made time.Time
	early         int
	// pending is until when a creation without an answer may still be carried out.
	pending time.Time
	backoff retry.Backoff
	// creating is the shortest time that a creation took.
	creating time.Duration
	// unknown is a token that Consul does not know, which the next read of the checks
	// reports to the caller.
	unknown string
}

// Hold implements SessionHolder from the first passing check on; Deregister destroys the
// session. After a refusal the task continues without a session and without checks that
// depend on one, and asks again later.
func (c *catalog) Hold(
	ctx context.Context, log hclog.Logger, credentials func() (token string, vouched bool), w workload.Workload,
) <-chan struct{} {
	c.session.mu.Lock()
	c.session.held = true
	c.session.mu.Unlock()
	k := &keeper{session: c.session, log: log, w: w, backoff: retry.Backoff{Base: creationBase, Max: creationMax}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.run(ctx, credentials)
	}()
	return ended
}

func (k *keeper) run(ctx context.Context, credentials func() (token string, vouched bool)) {
	select {
	case <-k.session.wanted:
	case <-ctx.Done():
		return
	}
	for first := true; ; first = false {
		pause := retry.Around(renewalPause)
		if token, vouched := credentials(); vouched {
			pause = k.step(ctx, token, first)
		}
		if first {
			close(k.session.tried)
		}
		if retry.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// step does what is due, and returns the time until the next one.
func (k *keeper) step(ctx context.Context, token string, first bool) time.Duration {
	id, _, bound := k.session.state()
	switch {
	case id == "" && k.pending.IsZero():
		return k.create(ctx, token, first)
	case id == "":
		return k.look(ctx, token)
	case !bound:
		if err := k.bind(ctx, token); err != nil {
			k.failed(ctx, "session checks were not written, trying again", err)
		}
	}
	return k.renew(ctx, token, id)
}

// renew renews the session without the client's Renew, which hides the status of an answer.
func (k *keeper) renew(ctx context.Context, token, id string) time.Duration {
	limited, cancel := context.WithTimeout(ctx, renewalLimit)
	defer cancel()
	_, err := k.session.client.Raw().Write("/v1/session/renew/"+id, nil, nil, writeOptions(limited, token, k.w))
	switch {
	case err == nil:
		k.renewed = time.Now()
		return retry.Around(renewalPause)
	case consulutil.Status(err) == http.StatusNotFound && strings.Contains(consulutil.Reason(err), "Session id"):
		k.set("", "")
		pause := rand.N(min(k.crowd(), time.Since(k.renewed)) + 1)
		if k.early = k.early + 1; time.Since(k.made) >= 2*sessionTTL {
			k.early = 0
		} else if k.early > 1 { // something ends each one
			pause = max(pause, k.backoff.Next())
		}
		k.log.Warn("the session has ended, creating another one", logkey.RetryIn, pause.Round(time.Millisecond))
		return pause
	case refused(err):
		return k.refuse(ctx, token, err)
	}
	k.failed(ctx, "session was not renewed, trying again", err)
	if consulutil.UnknownToken(err) && token != k.unknown {
		k.unknown = token
		k.session.mu.Lock()
		k.session.recheck = time.Now()
		k.session.mu.Unlock()
	}
	return retry.Around(renewalRepeat)
}

// crowd returns how long the servers need to create the sessions of all tasks of the
// cluster, which may all have lost theirs. How many there are follows from the time of a
// creation beyond that of another write.
func (k *keeper) crowd() time.Duration {
	k.session.mu.Lock()
	defer k.session.mu.Unlock()
	tasks := max(0, k.creating-k.session.writing) / taskCost
	return tasks * (k.creating + k.session.writing) * 8 / 10
}

// create creates a session. Its name is that of the session that has ended, whose checks
// pass again then without another write. After a creation that was not answered it is
// another one: the former may be made late, end some time, and its name's checks become
// critical then.
func (k *keeper) create(ctx context.Context, token string, first bool) time.Duration {
	_, name, bound := k.session.state()
	name = cmp.Or(name, fmt.Sprintf("%s-%08x", k.w.ID, rand.Uint32()))
	start := time.Now()
	err := k.session.supported(ctx, token)
	possible := false
	var id string
	if err == nil {
		start = time.Now()
		id, _, err = k.session.client.Session().CreateNoChecks(
			&api.SessionEntry{Name: name, Node: k.w.Node, TTL: sessionTTL.String()},
			writeOptions(consulutil.WithLimit(ctx, creationLimit), token, k.w))
		possible = mayBeDone(err)
	}
	switch {
	case err == nil:
		k.creating = shortest(k.creating, time.Since(start))
		k.use(id, name)
		if !first && !bound { // the first is for Set
			return 0
		}
		return retry.Around(renewalRepeat)
	case refused(err):
		return k.refuse(ctx, token, err)
	case possible:
		k.session.mu.Lock()
		k.session.name = name
		k.session.mu.Unlock()
		k.pending = time.Now().Add(lookLimit)
		k.failed(ctx, "creation of a session was not answered, looking for it", err)
		return retry.Around(lookPause)
	}
	pause := k.backoff.Next()
	k.failed(ctx, "session was not created, trying again", err)
	return pause
}

// use takes a session that exists.
func (k *keeper) use(id, name string) {
	if k.set(id, name); !k.renewed.IsZero() {
		k.log.Info("session created again")
	}
	k.renewed, k.pending, k.made = time.Now(), time.Time{}, time.Now()
	if k.early == 0 {
		k.backoff.Reset()
	}
}

func (k *keeper) set(id, name string) {
	k.session.mu.Lock()
	defer k.session.mu.Unlock()
	k.session.id = id
	if id == "" {
		return
	}
	if k.session.name != name {
		k.session.name, k.session.bound = name, false
	}
	k.session.reason = nil
	k.session.recheck = time.Now().Add(recheckPause)
}

// look looks for the session of a creation without an answer, so that there is no second
// one as long as the first may be on its way.
func (k *keeper) look(ctx context.Context, token string) time.Duration {
	_, name, bound := k.session.state()
	id, err := k.find(ctx, token, name, bound)
	switch {
	case err != nil:
		k.failed(ctx, "session without an answer was not looked for, trying again", err)
	case id != "":
		k.use(id, name)
		return 0
	}
	if time.Now().After(k.pending) {
		k.pending = time.Time{}
		k.session.mu.Lock()
		k.session.name, k.session.bound = "", false
		k.session.mu.Unlock()
		return k.backoff.Next()
	}
	return retry.Around(lookPause)
}

// find returns the ID of the session of that name. Consul has no index of names, so this
// reads all sessions of the cluster's tasks; checks that wait for the name show whether that
// is worth it.
func (k *keeper) find(ctx context.Context, token, name string, bound bool) (string, error) {
	q := query(ctx, token, k.w)
	q.AllowStale = true
	if bound {
		checks, err := consulutil.ReadChecks(k.session.client, k.w.Node, sessionCheckIDs(k.w), q)
		if err != nil || len(checks) == 0 || checks[0].Status != api.HealthPassing {
			return "", err
		}
	}
	var id string
	var meta consulutil.ListMeta
	ctx = consulutil.Stream(ctx, &meta, func(s api.SessionEntry) error {
		if s.Name == name {
			id = s.ID
		}
		return nil
	})
	_, _, err := k.session.client.Session().Node(k.w.Node, q.WithContext(ctx))
	if err != nil {
		return "", fmt.Errorf("list sessions of node %q: %w", k.w.Node, err)
	}
	return id, nil
}

// bind writes the session checks.
func (k *keeper) bind(ctx context.Context, token string) error {
	e := entry(k.w)
	if e.Checks = k.session.unwritten(k.w); len(e.Checks) == 0 {
		return nil
	}
	start := time.Now()
	_, err := k.session.client.Catalog().Register(e, (&api.WriteOptions{Token: token}).WithContext(ctx))
	switch {
	case err == nil:
		k.session.written(time.Since(start), e.Checks)
	case consulutil.Classify(err) == retry.Gone: // the services are lost, which a refresh restores
		k.session.mu.Lock()
		k.session.recheck = time.Now()
		k.session.mu.Unlock()
	}
	return err
}

// refuse ends the attempts for a while. It removes the session checks, also a former
// process's: without a session they would stay critical, or become so.
func (k *keeper) refuse(ctx context.Context, token string, err error) time.Duration {
	found, readErr := consulutil.ReadChecks(k.session.client, k.w.Node, sessionCheckIDs(k.w), query(ctx, token, k.w))
	errs := []error{readErr}
	for _, check := range found {
		errs = append(errs, deregister(ctx, k.session.client, token, k.w, api.CatalogDeregistration{CheckID: check.CheckID}))
	}
	k.session.mu.Lock()
	k.session.id, k.session.name, k.session.bound, k.session.reason = "", "", false, err
	k.session.mu.Unlock()
	k.pending = time.Time{}
	if failure := errors.Join(errs...); failure != nil {
		k.failed(ctx, "session checks were not removed, trying again", failure)
		return k.backoff.Next()
	}
	return retry.Around(sessionRetry)
}

// failed logs a failure. Before the first session it is why there is none.
func (k *keeper) failed(ctx context.Context, text string, err error) {
	if ctx.Err() != nil {
		return
	}
	k.session.mu.Lock()
	if k.session.id == "" && k.renewed.IsZero() {
		k.session.reason = err
	}
	k.session.mu.Unlock()
	k.log.Log(k.causes.Level(err), text, logkey.Error, err)
}

// mayBeDone reports whether a write that failed may be carried out all the same.
func mayBeDone(err error) bool {
	status := consulutil.Status(err)
	switch {
	case err == nil, consulutil.Unreachable(err), !consulutil.Classify(err).Retryable():
		return false
	case status >= http.StatusInternalServerError:
		return !strings.Contains(consulutil.Reason(err), "No cluster leader") && !refused(err)
	}
	return status == 0
}

// shortest returns the shorter time of two, of which the first may be none.
func shortest(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

package broker

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

func TestSweeps(t *testing.T) {
	t.Parallel()
	inEach(t, []scenario{renewedTokenOutlivesItsFirstExpiry, taskWithAnUncertainLastWriteIsRetained,
		stoppingTaskKeepsItsToken, tokensAreCountedWhileLeading})
}

func TestTaskThatMovedDuringDeliveryLosesTheToken(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*types.Task){
		"stopped":         func(t *types.Task) { t.DesiredStatus = aws.String("STOPPED") },
		"another address": func(t *types.Task) { t.Attachments = interfaceAt("10.0.1.9") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, w *fixture) {
				c := w.task(1)
				w.listen("10.0.1.1:8080", func(r *http.Request) int {
					w.ecs.change(c.arn, change)
					return c.pushed(r)
				})
				id := accepted(t, c.ask())
				advance(5 * time.Second)
				w.wantState(id, "revoked")
				c.wantLive()
			})
		})
	}
}

func TestStoppedTaskLosesItsTokenWithinTwoMinutes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fakeECS, string){
		"stopped": func(e *fakeECS, arn string) {
			e.change(arn, func(t *types.Task) { t.LastStatus = aws.String("STOPPED") })
		},
		"forgotten": func(e *fakeECS, arn string) { e.mu.Lock(); delete(e.tasks, arn); e.mu.Unlock() },
		"cluster deleted": func(e *fakeECS,
			_ string) {
			e.fail(&awsutil.NoClusterError{Inactive: true, Err: errFault})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, w *fixture) {
				c := w.task(1)
				accepted(t, c.ask())
				advance(5 * time.Second)
				change(w.ecs, c.arn)
				advance(125 * time.Second)
				c.wantLive()
			})
		})
	}
}

// renewedTokenOutlivesItsFirstExpiry: the backend knows the end of a token that its holder renews.
func renewedTokenOutlivesItsFirstExpiry(t *testing.T, w *fixture) {
	w.ecs.labels[ttlLabel] = "1h"
	w.backend.period = time.Hour
	c := w.task(1)
	id := accepted(t, c.ask())
	for range 3 {
		advance(50 * time.Minute)
		w.backend.renew(c.arn, time.Hour)
	}
	advance(50 * time.Minute)
	w.wantState(id, "active")
	advance(12 * time.Minute)
	w.wantState(id, "expired")
}

// While the store takes no writes, neither sweeps nor a holder who asks again start jobs that
// stay: a token is revoked at the pace of one.
func TestRevocationsOfATokenDoNotMultiply(t *testing.T) {
	t.Parallel()
	store := &failingStore{}
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		accepted(t, c.ask())
		advance(5 * time.Second)
		store.down.Store(true)
		for range 5 {
			wantRefused(t, c.giveBack(c.ip, c.held()), http.StatusServiceUnavailable, "not_revoked")
		}
		w.ecs.change(c.arn, func(t *types.Task) { t.LastStatus = aws.String("STOPPED") })
		advance(15 * sweepInterval)
		revoked := func() int {
			w.backend.mu.Lock()
			defer w.backend.mu.Unlock()
			return len(w.backend.revoked)
		}
		before := revoked()
		advance(sweepInterval)
		if n := revoked() - before; n < 1 || n > 14 {
			t.Errorf("%d calls in a minute, want those of one job and of a short one of the sweep", n)
		}
		store.down.Store(false)
		advance(sweepInterval)
		if all, err := store.Load(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("records %v, %v; want none", all, err)
		}
	}, func(o *Options) { o.Store = store })
}

// taskWithAnUncertainLastWriteIsRetained: a record that may have been written is known until that is
// certain: saved anew, it would look like another broker's.
func taskWithAnUncertainLastWriteIsRetained(_ *testing.T, w *fixture) {
	lead := w.broker.leadership.Load()
	for _, unsure := range []bool{true, false} {
		e := newEntry(Record{TaskARN: taskARN(1), Cluster: clusterARN})
		e.unsure = unsure
		lead.table.mu.Lock()
		lead.table.tasks[taskARN(1)] = e
		lead.table.mu.Unlock()
		advance(regrantWindow + 2*sweepInterval)
		lead.table.mu.Lock()
		if known := lead.table.tasks[taskARN(1)] != nil; known != unsure {
			w.t.Errorf("uncertain %v: known %v", unsure, !unsure)
		}
		lead.table.mu.Unlock()
	}
}

// What ECS does not say is no reason to revoke.
func TestTokenSurvivesAnOutageOfECS(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"no answer":                     errFault,
		"cluster that it does not find": &awsutil.NoClusterError{Err: errFault}, // perhaps the broker's mistake
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, w *fixture) {
				c := w.task(1)
				accepted(t, c.ask())
				advance(5 * time.Second)
				w.ecs.fail(err)
				r := w.task(2).ask()
				wantRefused(t, r, http.StatusBadGateway, "ecs")
				advance(10 * time.Minute)
				if alive := w.backend.alive(c.arn); len(alive) != 1 {
					t.Errorf("tokens %v", alive)
				}
			})
		})
	}
}

// stoppingTaskKeepsItsToken: a task that is being stopped needs its token for its last requests.
func stoppingTaskKeepsItsToken(t *testing.T, w *fixture) {
	c := w.task(1)
	accepted(t, c.ask())
	advance(5 * time.Second)
	w.ecs.change(c.arn, func(t *types.Task) {
		t.DesiredStatus, t.LastStatus = aws.String("STOPPED"), aws.String("STOPPING")
	})
	advance(5 * time.Minute)
	if alive := w.backend.alive(c.arn); len(alive) != 1 {
		t.Errorf("tokens %v", alive)
	}
}

// More tasks than can wait for ECS at one time, while others ask for tokens.
func TestSweepGetsThroughAnyNumberOfTasks(t *testing.T) {
	t.Parallel()
	const tasks = 12_000
	memory := &MemoryStore{}
	for n := range tasks {
		r := Record{TaskARN: taskARN(1000 + n), Cluster: clusterARN, Tokens: []IssuedToken{{
			RequestID: fmt.Sprint(n), Accessor: "a", Status: TokenLive, Address: "10.0.0.1",
			Expires: time.Now().Add(24 * 365 * 100 * time.Hour),
		}}}
		if _, err := memory.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	in(t, func(t *testing.T, w *fixture) {
		advance(sweepInterval + time.Second)
		asked := time.Now()
		if r := w.task(1).ask(); r.Code != http.StatusAccepted || time.Since(asked) > time.Second {
			t.Errorf("answer %d during the sweep, after %s", r.Code, time.Since(asked))
		}
		// ECS knows none of them. That has to last for a minute.
		advance(sweepInterval + 30*time.Second)
		if all, _ := memory.Load(t.Context()); len(all) != 1 {
			t.Errorf("%d records are left, want that of the task that asked", len(all))
		}
	}, func(o *Options) { o.Store = memory })
}

// A token without expiry is revoked like any other when its task has stopped, also by a
// broker that was started meanwhile, and as often as it takes.
func TestTokenOfATasksLifeEndsWithItsTask(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		w.ecs.labels[ttlLabel] = taskLife
		c := w.task(1)
		accepted(t, c.ask())
		advance(30 * 24 * time.Hour)
		w.restart()
		if alive := w.backend.alive(c.arn); len(alive) != 1 {
			t.Fatalf("tokens %v of a task that runs, want 1", alive)
		}
		privilege := &backend.Error{Op: "revoke", Err: consulutil.WithClass(backend.ErrPrivilege, retry.Permanent)}
		w.backend.mu.Lock()
		w.backend.fault = func(string) error { return privilege }
		w.backend.mu.Unlock()
		w.ecs.change(c.arn, func(t *types.Task) { t.LastStatus = aws.String("STOPPED") })
		advance(time.Hour)
		if alive := w.backend.alive(c.arn); len(alive) != 1 {
			t.Fatalf("tokens %v, want one that the backend does not revoke", alive)
		}
		if n := strings.Count(w.audit.String(), `"not_revoked"`); n != 1 {
			t.Errorf("%d alarms in an hour, want 1", n)
		}
		if !strings.Contains(w.log.String(), "a token cannot be revoked, and does not expire") {
			t.Errorf("log\n%s", w.log)
		}
		w.backend.mu.Lock()
		w.backend.fault = nil
		w.backend.mu.Unlock()
		advance(2 * sweepInterval)
		c.wantLive()
		if records, err := w.options.Store.Load(t.Context()); err != nil || len(records) != 0 {
			t.Errorf("records %v, %v", records, err)
		}
		if !strings.Contains(w.audit.String(), `"ttl":"task"`) {
			t.Errorf("audit log %s", w.audit)
		}
	}, func(o *Options) { o.Rules.TaskLife = true })
}

package broker

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// unreliable is a store whose answers to writes are lost: to some that have landed, and to
// some that land with the next one only.
type unreliable struct {
	MemoryStore
	lose, delay func(write int) bool
	writes      int
	late        *Record
}

func (u *unreliable) Save(ctx context.Context, r Record) (uint64, error) {
	if u.late != nil {
		_, _ = u.MemoryStore.Save(ctx, *u.late)
		u.late = nil
	}
	u.writes++
	if u.delay != nil && u.delay(u.writes) {
		delayed := r.Clone()
		u.late = &delayed
		return 0, errFault
	}
	version, err := u.MemoryStore.Save(ctx, r)
	if u.lose != nil && u.lose(u.writes) {
		return 0, errFault
	}
	return version, err
}

// A write whose answer is lost does not cost the other tasks their requests.
func TestLostAnswerOfAWriteDoesNotEndTheTerm(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		lost := func(write int) bool { return write == n+1 || write == n+3 }
		for name, store := range map[string]*unreliable{"landed": {lose: lost}, "late": {delay: lost}} {
			t.Run(fmt.Sprintf("%s, write %d", name, n+1), func(t *testing.T) {
				t.Parallel()
				in(t, func(t *testing.T, w *fixture) {
					c, lead := w.task(1), w.broker.leadership.Load()
					for range 3 {
						first := c.held()
						for attempt := 0; c.held() == first && attempt < 4; attempt++ {
							if first == "" {
								accepted(t, c.ask())
							} else {
								accepted(t, c.rotate())
							}
							advance(30 * time.Second)
						}
						if c.held() == first {
							t.Fatal("no token")
						}
					}
					advance(time.Minute)
					if w.broker.leadership.Load() != lead {
						t.Error("the leadership ended")
					}
					c.wantLive(c.held())
					r, err := store.MemoryStore.Read(t.Context(), c.arn)
					if err != nil {
						t.Fatal(err)
					}
					testkit.Equal(t, "tokens in memory", lead.table.tasks[c.arn].record.Tokens, r.Tokens)
					testkit.Equal(t, "stored tokens", len(r.Tokens), 1)
				}, func(o *Options) { o.Store = store })
			})
		}
	}
}

// What another broker has written is not taken for a write of this one.
func TestWriteOfAnotherBrokerAfterALostAnswerEndsTheTerm(t *testing.T) {
	t.Parallel()
	store := &unreliable{lose: func(write int) bool { return write == 3 }}
	in(t, func(t *testing.T, w *fixture) {
		c, lead := w.task(1), w.broker.leadership.Load()
		accepted(t, c.ask())
		advance(time.Second)
		accepted(t, c.rotate()) // whose first write has no answer
		synctest.Wait()
		r, err := store.MemoryStore.Read(t.Context(), c.arn)
		if err != nil {
			t.Fatal(err)
		}
		r.Writer = "another"
		if _, err := store.MemoryStore.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		advance(time.Minute)
		if w.broker.leadership.Load() == lead {
			t.Error("the leadership goes on")
		}
	}, func(o *Options) { o.Store = store })
}

// ahead is the store of a broker whose clock is ahead of that of the one before: lives end
// earlier by it.
type ahead struct {
	MemoryStore
	by time.Duration
}

func (a *ahead) Load(ctx context.Context) ([]Record, error) {
	all, err := a.MemoryStore.Load(ctx)
	for _, r := range all {
		for i := range r.Tokens {
			r.Tokens[i].Expires = r.Tokens[i].Expires.Add(-a.by)
		}
	}
	return all, err
}

// A broker whose clock is ahead takes over: the token has not ended, only by its clock.
func TestTokenIsKnownToABrokerWhoseClockIsAhead(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*testing.T, *client) (live []string){
		"rotation": func(t *testing.T, c *client) []string {
			accepted(t, c.rotate())
			advance(overlap + 2*time.Second)
			return []string{"secret-of-accessor-2"}
		},
		"end of the task": func(_ *testing.T, c *client) []string {
			c.ecs.mu.Lock()
			delete(c.ecs.tasks, c.arn)
			c.ecs.mu.Unlock()
			advance(2*sweepInterval + 5*time.Second)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &ahead{}
			in(t, func(t *testing.T, w *fixture) {
				w.ecs.labels[ttlLabel] = "10m"
				c := w.task(1)
				accepted(t, c.ask())
				advance(time.Second)
				w.stop()
				store.by = 12 * time.Minute
				w.start()
				advance(sweepInterval + time.Second)
				want := then(t, c)
				c.wantLive(want...)
			}, func(o *Options) { o.Store = store })
		})
	}
}

// A task that asks after the life of its token has lost none, and one whose end the broker
// cannot bring about is no alarm.
func TestEndedTokensAreNotRevoked(t *testing.T) {
	t.Parallel()
	holder := &holderBackend{known: map[string]string{}}
	in(t, func(t *testing.T, w *fixture) {
		w.ecs.labels[ttlLabel] = "1m"
		c := w.task(1)
		for range maxRegrants + 2 {
			accepted(t, c.ask())
			advance(2 * time.Minute)
			if c.held() == "" {
				t.Fatal("no token")
			}
			c.lose()
			holder.forget()
		}
		for range 2 { // the second one is in place of a token that lives
			accepted(t, c.ask())
			advance(time.Second)
			c.lose()
		}
		holder.forget()
		if log := w.audit.String(); strings.Contains(log, `"alarm"`) {
			t.Errorf("audit log\n%s", log)
		}
		advance(clockGrace + 2*sweepInterval)
		if all, _ := w.options.Store.Load(t.Context()); len(all) != 0 {
			t.Errorf("records %+v", all)
		}
	}, func(o *Options) {
		holder.fakeBackend = o.Backend.(*fakeBackend)
		o.Backend = holder
	})
}

// A token is found without a look at all records, of which there may be tens of thousands.
func TestTokenIsFoundAmongAnyNumberOfTasks(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// used is the processor time of this thread, which other load does not change much.
	used := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
			t.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	cost := func(tasks int) (least time.Duration) {
		memory := &MemoryStore{}
		for n := range tasks {
			r := Record{TaskARN: taskARN(1000 + n), Cluster: clusterARN, Tokens: []IssuedToken{{
				RequestID: "r", Accessor: "a", Status: TokenLive, SecretHash: fmt.Sprint(n), Address: "10.0.0.1",
				Expires: time.Now().Add(time.Hour),
			}}}
			if _, err := memory.Save(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		w := newFixture(t, func(o *Options) { o.Store = memory })
		defer w.stop()
		c := w.task(1)
		testkit.Eventually(t, "the broker leads", func() bool { return w.broker.leadership.Load() != nil })
		least = time.Hour
		for round := range 3 {
			before := used()
			for n := range 1000 {
				wantRefused(t, c.giveBack(fmt.Sprintf("10.%d.%d.%d", round, n/250, n%250), "x"),
					http.StatusUnauthorized, "unknown_token")
			}
			least = min(least, used()-before)
		}
		return least
	}
	few, many := cost(10), cost(50_000)
	if many > 10*few {
		t.Errorf("1000 requests take %s with 10 tasks, %s with 50,000", few, many)
	}
}

// stopWaitsForARedemption: a broker that is stopped while the backend makes a token ends after it has
// revoked the token, which no other broker could revoke with consul-login.
func stopWaitsForARedemption(t *testing.T, w *fixture) {
	c := w.task(1)
	w.backend.delay = 3 * time.Second
	accepted(t, c.ask())
	advance(time.Second)
	w.stop()
	if len(w.backend.made) != 1 || len(w.backend.tokens) != 0 {
		t.Errorf("made %v, live %v at the end", w.backend.made, w.backend.tokens)
	}
	if records, err := w.options.Store.Load(t.Context()); err != nil || len(records) != 0 {
		t.Errorf("records %+v, %v: the next broker would revoke the token again, and may not be able to", records,
			err)
	}
}

// An outage that begins when a token was made is no alarm: the token is revoked when it is over.
func TestOutageAfterARedemptionRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	store := &unreliable{lose: func(write int) bool { return write == 2 }}
	in(t, func(t *testing.T, w *fixture) {
		c, over := w.task(1), time.Time{}
		w.backend.created = func(backend.Request) { over = time.Now().Add(10 * time.Second) }
		w.backend.fault = func(op string) error {
			if op == "revoke" && time.Now().Before(over) {
				return transient()
			}
			return nil
		}
		accepted(t, c.ask())
		advance(time.Minute)
		testkit.Equal(t, "alarms", w.alarms(), nil)
		testkit.Equal(t, "live tokens", w.backend.tokens, map[string]made{})
		if len(w.backend.made) == 0 {
			t.Error("no token was made")
		}
	}, func(o *Options) { o.Store = store })
}

// tokensAreCountedWhileLeading: of several brokers the one that leads counts the tokens.
func tokensAreCountedWhileLeading(t *testing.T, w *fixture) {
	count := func() string {
		_, after, _ := strings.Cut(w.call(http.MethodGet, "/metrics", "10.9.9.9", nil).Body.String(),
			"\nconsul_ecs_token_broker_tokens ")
		value, _, _ := strings.Cut(after, "\n")
		return value
	}
	accepted(t, w.task(1).ask())
	advance(sweepInterval + time.Second)
	leading := count()
	w.stop()
	if after := count(); leading != "1" || after != "0" {
		t.Errorf("%s tokens while leading, %s after it", leading, after)
	}
}

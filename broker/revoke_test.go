package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// refusing lets the backend refuse revocations with an error, or take them with nil, and returns how
// many it has been asked for.
func (w *fixture) refusing(err error) (asked func() int) {
	w.backend.mu.Lock()
	defer w.backend.mu.Unlock()
	n := 0
	w.backend.fault = func(op string) error {
		if op != "revoke" {
			return nil
		}
		n++
		return err
	}
	return func() int {
		w.backend.mu.Lock()
		defer w.backend.mu.Unlock()
		return n
	}
}

// lastLine returns the last line of the audit log.
func (w *fixture) lastLine() (last line) {
	for text := range strings.Lines(w.audit.String()) {
		last = line{}
		if err := json.Unmarshal([]byte(text), &last); err != nil {
			w.t.Error(err)
		}
	}
	return last
}

func (w *fixture) stopTask(c *client) {
	w.ecs.change(c.arn, func(t *types.Task) { t.LastStatus = aws.String("STOPPED") })
}

// wantNone fails the test if a task has a token or a record of one.
func (w *fixture) wantNone(arn string) {
	w.t.Helper()
	if alive := w.backend.alive(arn); len(alive) != 0 {
		w.t.Errorf("tokens %v live", alive)
	}
	r, err := w.options.Store.Read(w.t.Context(), arn)
	if err != nil {
		w.t.Error(err)
	}
	if len(r.Tokens) != 0 {
		w.t.Errorf("the record has tokens %+v", r.Tokens)
	}
}

// Whatever the refusal and the token's life, and whichever broker leads: a token whose revocation was
// requested is asked for once a minute until it is gone. A thief renews it.
func TestRefusedRevocationIsRepeatedUntilTheTokenIsGone(t *testing.T) {
	t.Parallel()
	refusals := map[string]error{"refused": noPrivilege(), "unavailable": transient()}
	for life, period := range map[string]time.Duration{"168h": 0, "1h": time.Hour} {
		for refusal, err := range refusals {
			for _, leaders := range []int{1, 2} {
				t.Run(fmt.Sprint(life, refusal, leaders), func(t *testing.T) {
					t.Parallel()
					in(t, func(t *testing.T, w *fixture) {
						w.ecs.labels[ttlLabel], w.backend.period = life, period
						c := w.task(1)
						accepted(t, c.ask())
						advance(5 * time.Second)
						asked := w.refusing(err)
						w.stopTask(c)
						for half := range 6 { // hours
							advance(30 * time.Minute)
							if period > 0 {
								w.backend.renew(c.arn, period)
							}
							if half == 2 && leaders == 2 {
								w.restart()
							}
						}
						if alive := w.backend.alive(c.arn); len(alive) != 1 {
							t.Fatalf("tokens %v, want one whose revocation is refused", alive)
						}
						if n := asked(); n < 170 || n > 180+leaders*60 {
							t.Errorf("%d calls in three hours, want one a minute, and a few more of each leader at "+
								"first", n)
						}
						if n := len(w.alarms()); n < 3 || n > 4 {
							t.Errorf("%d alarms in three hours, want one an hour of each leader", n)
						}
						w.refusing(nil)
						advance(2 * time.Minute)
						w.wantNone(c.arn)
						if last := w.lastLine(); last.Decision != string(Revoked) || last.Accessor != "accessor-1" {
							t.Errorf("the last line of the audit log is %+v, want that the token is revoked", last)
						}
					})
				})
			}
		}
	}
}

// The task is running: only the record and the job know that the token is to be revoked.
func TestTokenOfAMisusedHandleIsRevokedWhenTheBackendAccepts(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %v", restart), func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, w *fixture) {
				c := w.task(1)
				id := accepted(t, c.ask())
				advance(5 * time.Second)
				w.refusing(noPrivilege())
				wantRefused(t, c.unwrap(id), http.StatusGone, "used")
				advance(10 * time.Minute)
				if restart {
					w.restart()
				}
				w.refusing(nil)
				advance(2 * time.Minute)
				w.wantNone(c.arn)
			})
		})
	}
}

// A write that marks a token as one to revoke may land although its answer is lost. Then the record
// alone knows it.
func TestTokenThatTheRecordAloneKnowsIsRevoked(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		accepted(t, c.ask())
		advance(5 * time.Second)
		lead := w.broker.leadership.Load()
		lead.table.mu.Lock()
		e := lead.table.tasks[c.arn]
		lead.table.mu.Unlock()
		if err := lead.records.save(t.Context(), e,
			func(rec *Record) { rec.Tokens[0].Status = TokenRevoking }); err != nil {
			t.Fatal(err)
		}
		advance(2 * time.Minute)
		w.wantNone(c.arn)
	})
}

// refusingBackend refuses to revoke tokens of other tasks until it is open.
type refusingBackend struct {
	*fakeBackend
	open  atomic.Bool
	asked atomic.Int64
}

func (b *refusingBackend) Revoke(ctx context.Context, accessor string) error {
	if !b.open.Load() && strings.HasPrefix(accessor, "refused-") {
		b.asked.Add(1)
		return noPrivilege()
	}
	return b.fakeBackend.Revoke(ctx, accessor)
}

// Thousands of tokens that the backend refuses to revoke cost it a few calls a second, do not hold
// back another one, and are gone two minutes after it accepts.
func TestThousandsOfRefusedRevocationsAreFewCalls(t *testing.T) {
	t.Parallel()
	const tokens, most = 3000, 60 * laterRevokesAtOnce
	memory, refusing := &MemoryStore{}, &refusingBackend{}
	for n := range tokens {
		r := Record{TaskARN: taskARN(1000 + n), Cluster: clusterARN, Tokens: []IssuedToken{{
			RequestID: fmt.Sprint(n), Accessor: fmt.Sprint("refused-", n), Status: TokenRevoking, Address: "10.0.0.1",
			Expires: time.Now().Add(24 * 365 * 100 * time.Hour),
		}}}
		if _, err := memory.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	in(t, func(t *testing.T, w *fixture) {
		advance(2 * time.Minute)
		for range 10 {
			before := refusing.asked.Load()
			advance(time.Minute)
			if n := refusing.asked.Load() - before; n < most*9/10 || n > most*11/10 {
				t.Errorf("%d calls in a minute, want about %d", n, most)
			}
		}
		c := w.task(1)
		accepted(t, c.ask())
		advance(5 * time.Second)
		if r := c.giveBack(c.ip, c.held()); r.Code != http.StatusOK {
			t.Errorf("another token: %d %s", r.Code, r.Body)
		}
		refusing.open.Store(true)
		advance(2 * time.Minute)
		all, err := memory.Load(t.Context())
		if err != nil {
			t.Error(err)
		}
		if len(all) != 0 {
			t.Errorf("%d tokens remain", len(all))
		}
	}, func(o *Options) {
		refusing.fakeBackend = o.Backend.(*fakeBackend)
		o.Backend, o.Store = refusing, memory
	})
}

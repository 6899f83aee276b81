package broker

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestRevocations(t *testing.T) {
	t.Parallel()
	inEach(t, []scenario{tokenThatTheRecordAloneKnowsIsRevoked, holderRevokesItsToken, replacedTokenIsRevokedOnRequest,
		revocationIsConfirmedWhenItIsDone, revocationOfAnEarlierTermIsAudited, failedRevocationRaisesOneAlarm,
		redemptionAfterTheTaskHasGivenUpIsRevoked, stopWaitsForARedemption})
}

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
func (w *fixture) lastLine() line {
	all := w.lines()
	return all[len(all)-1]
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

// tokenThatTheRecordAloneKnowsIsRevoked: a write that marks a token as one to revoke may land although
// its answer is lost. Then the record alone knows it.
func tokenThatTheRecordAloneKnowsIsRevoked(t *testing.T, w *fixture) {
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
		c.revoke(c.held())
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

// holderRevokesItsToken: a holder that cannot revoke its token has the broker do it.
func holderRevokesItsToken(t *testing.T, w *fixture) {
	c := w.task(1)
	id := accepted(t, c.ask())
	advance(time.Second)
	wantRefused(t, c.call(http.MethodPost, "/v1/revoke", c.ip, nil), http.StatusUnauthorized, "no_bearer")
	wantRefused(t, c.giveBack(c.ip, "x"), http.StatusUnauthorized, "unknown_token")
	wantRefused(t, c.giveBack(elsewhere, c.held()), http.StatusUnauthorized, "address")
	c.revoke(c.held())
	advance(time.Second)
	w.wantState(id, "revoked")
	c.wantLive()
	wantRefused(t, c.giveBack(c.ip, c.held()), http.StatusUnauthorized, "unknown_token")
}

// giveBack asks the broker to revoke a token.
func (c *client) giveBack(from, bearer string) *httptest.ResponseRecorder {
	return c.call(http.MethodPost, "/v1/revoke", from, nil, "Authorization", "Bearer "+bearer)
}

// revoke gives a token back, which the broker confirms.
func (c *client) revoke(bearer string) {
	c.t.Helper()
	r := c.giveBack(c.ip, bearer)
	testkit.Equal(c.t, "answer to the revocation", fmt.Sprint(r.Code, r.Body), `200 {"revoked":true}`)
}

// replacedTokenIsRevokedOnRequest: a holder may give a replaced token back before the overlap ends.
func replacedTokenIsRevokedOnRequest(t *testing.T, w *fixture) {
	c := w.task(1)
	accepted(t, c.ask())
	advance(time.Second)
	first := c.held()
	accepted(t, c.rotate())
	advance(time.Second)
	c.wantLive(first, c.held())
	c.revoke(first)
	advance(time.Second)
	c.wantLive("secret-of-accessor-2")
	testkit.Equal(t, "token of the task", c.held(), "secret-of-accessor-2")
}

// revocationIsConfirmedWhenItIsDone: the broker confirms a revocation when the token is gone. Until
// then the holder asks again.
func revocationIsConfirmedWhenItIsDone(t *testing.T, w *fixture) {
	c := w.task(1)
	id := accepted(t, c.ask())
	advance(time.Second)
	down := true
	w.backend.fault = func(op string) error {
		if down && op == "revoke" {
			return transient()
		}
		return nil
	}
	for range 2 {
		asked := time.Now()
		wantRefused(t, c.giveBack(c.ip, c.held()), http.StatusServiceUnavailable, "not_revoked")
		if took := time.Since(asked); took > receiver.RevocationLimit {
			t.Errorf("answered after %s: its holder has given up", took)
		}
	}
	w.backend.mu.Lock()
	down = false
	w.backend.mu.Unlock()
	c.revoke(c.held())
	c.wantLive()
	advance(time.Minute)
	w.wantState(id, "revoked")
	testkit.Equal(t, "revocations", len(w.backend.revoked), 1)
}

// revocationOfAnEarlierTermIsAudited: a token of an earlier leadership has no request whose transition
// would be in the audit log.
func revocationOfAnEarlierTermIsAudited(t *testing.T, w *fixture) {
	c := w.task(1)
	accepted(t, c.ask())
	advance(time.Second)
	w.restart()
	advance(time.Second)
	wantRefused(t, c.giveBack(elsewhere, c.held()), http.StatusUnauthorized, "address")
	c.revoke(c.held())
	var lines []string
	for _, l := range w.lines() {
		switch {
		case l.Alarm:
			lines = append(lines, fmt.Sprint(l.Decision, " ", l.Peer, " ", l.Accessor))
		case l.Decision == "revoked":
			lines = append(lines, fmt.Sprint(l.Reason, " ", l.Task, " ", l.Accessor))
		}
	}
	testkit.Equal(t, "revocations and alarms", lines, []string{"revocation_refused 10.0.1.250 accessor-1",
		"revoked by its holder " + c.arn + " accessor-1"})
}

package broker

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// noPrivilege returns the answer of a backend that the broker's token has no privilege.
func noPrivilege() error {
	return &backend.Error{Op: "create the token of a task", Err: consulutil.WithClass(backend.ErrPrivilege,
		retry.Permanent), Remedy: "give it one"}
}

// alarms returns the lines of the audit log that are alarms.
func (w *fixture) alarms() (all []line) {
	for _, l := range w.lines() {
		if l.Alarm {
			all = append(all, l)
		}
	}
	return all
}

// failing lets operations of the backend fail permanently.
func (w *fixture) failing(operations ...string) {
	w.backend.mu.Lock()
	defer w.backend.mu.Unlock()
	w.backend.fault = func(op string) error {
		for _, each := range operations {
			if op == each {
				return noPrivilege()
			}
		}
		return nil
	}
}

// A backend that refuses the broker is one alarm an hour, and each task gets the cause at its
// first request.
func TestRefusalOfTheBackendIsNamedToTasksAndOneAlarm(t *testing.T) {
	t.Parallel()
	const cause = "create the token of a task: the broker lacks a privilege: give it one"
	for _, operation := range []string{"issue", "redeem"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, w *fixture) {
				w.failing(operation)
				refused := func(n int) {
					c := w.task(n)
					if operation == "issue" {
						r := c.ask()
						if wantRefused(t, r, http.StatusUnprocessableEntity,
							receiver.BackendFailed); !strings.Contains(r.Body.String(), cause) {
							t.Errorf("%s", r.Body)
						}
						return
					}
					w.listen(c.ip+":8080", func(r *http.Request) int {
						p, _ := c.open(r)
						answer := c.unwrap(p.RequestID)
						if wantRefused(t, answer, http.StatusUnprocessableEntity,
							receiver.BackendFailed); !strings.Contains(answer.Body.String(), cause) {
							t.Errorf("%s", answer.Body)
						}
						return http.StatusBadGateway
					})
					id := accepted(t, c.ask())
					advance(5 * time.Second)
					testkit.Equal(t, "request", w.state(id),
						receiver.Status{RequestID: id, State: "failed", Attempts: 1, Reason: cause})
				}
				for n := range 3 {
					refused(n + 1)
				}
				got := w.alarms()
				if len(got) != 1 {
					t.Fatalf("alarms %+v, want one", got)
				}
				testkit.Equal(t, "decision of the alarm", got[0].Decision, "backend_refused")
				testkit.Equal(t, "reason of the alarm", got[0].Reason, cause)
				advance(alarmPause + 2*sweepInterval)
				for n := range 3 {
					refused(n + 11)
				}
				if got := w.alarms(); len(got) != 2 {
					t.Errorf("after an hour: alarms %+v", got)
				}
			})
		})
	}
}

// failedRevocationRaisesOneAlarm: a token that the broker cannot revoke is one alarm, and its holder
// learns that and why.
func failedRevocationRaisesOneAlarm(t *testing.T, w *fixture) {
	c := w.task(1)
	accepted(t, c.ask())
	advance(time.Second)
	end := c.token.Expires.UTC().Format(time.RFC3339)
	w.failing("revoke")
	for range 2 {
		asked := time.Now()
		r := c.giveBack(c.ip, c.held())
		wantRefused(t, r, http.StatusServiceUnavailable, "not_revoked")
		testkit.Equal(t, "time until the answer", time.Since(asked), 0)
		for _, text := range []string{"ends at " + end, "the broker lacks a privilege"} {
			if !strings.Contains(r.Body.String(), text) {
				t.Errorf("no %q in %s", text, r.Body)
			}
		}
	}
	c.lose()
	accepted(t, c.ask())
	advance(5 * time.Second)
	c.lose()
	accepted(t, c.ask()) // which cannot revoke the second token either
	advance(5 * time.Second)
	alarms := w.alarms()
	if len(alarms) != 2 {
		t.Fatalf("alarms %+v", alarms)
	}
	for i, got := range alarms {
		if got.Decision != "not_revoked" || got.Accessor != fmt.Sprint("accessor-", i+1) {
			t.Errorf("alarm %+v", got)
		}
	}
	r, err := w.options.Store.Read(t.Context(), c.arn)
	if err != nil {
		t.Fatal(err)
	}
	var statuses []TokenStatus
	for _, k := range r.Tokens {
		statuses = append(statuses, k.Status)
	}
	if !slices.Equal(statuses, []TokenStatus{TokenRevoking, TokenRevoking, TokenLive}) {
		t.Errorf("the record has tokens %v, want the three that live", statuses)
	}
}

// What is above the ceiling is a mistake of the task; a ceiling that cannot be read is none.
func TestCeilingIsAnsweredByWhatWaitingChanges(t *testing.T) {
	t.Parallel()
	var failure error
	compared := 0
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		for _, tt := range []struct {
			failure error
			status  int
			code    string
		}{
			{&backend.Error{Op: `policy "app"`, Err: consulutil.WithClass(backend.ErrPolicy, retry.Permanent),
				Remedy: "create it"}, http.StatusUnprocessableEntity, "policies"},
			{transient(), http.StatusServiceUnavailable, receiver.BackendFailed},
			{noPrivilege(), http.StatusUnprocessableEntity, receiver.BackendFailed},
		} {
			failure = tt.failure
			wantRefused(t, c.ask(), tt.status, tt.code)
		}
		if got := w.alarms(); len(got) != 1 {
			t.Errorf("alarms %+v", got)
		}
		for range 2 * taskBurst {
			advance(time.Second)
			c.ask()
		}
		if compared != taskBurst {
			t.Errorf("the policies were read %d times for a task, want %d", compared, taskBurst)
		}
	}, func(o *Options) {
		o.Ceiling = func(context.Context, []string) error { compared++; return failure }
	})
}

package broker

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// disk is an audit log that can be full.
type disk struct {
	buffer
	full bool
	room int // of a write to a full disk
}

func (d *disk) Write(p []byte) (int, error) {
	if d.full {
		n, _ := d.buffer.Write(p[:min(d.room, len(p))])
		return n, errors.New("no space left on device")
	}
	return d.buffer.Write(p)
}

// Without the audit log no token is made, and tokens are revoked all the same.
func TestNoTokensWithoutTheAuditLog(t *testing.T) {
	t.Parallel()
	d := &disk{}
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		accepted(t, c.ask())
		advance(time.Second)
		d.full = true
		held := c.held()
		c.revoke(held)
		for range 2 {
			r := w.task(2).ask()
			wantRefused(t, r, http.StatusServiceUnavailable, "audit")
			if strings.Contains(r.Body.String(), "no space left") {
				t.Errorf("the caller learns %s", r.Body)
			}
		}
		wantRefused(t, c.call(http.MethodGet, "/v1/health", c.ip, nil), http.StatusServiceUnavailable, "audit")
		if len(w.backend.issued) != 1 {
			t.Errorf("%d grants", len(w.backend.issued))
		}
		if n := strings.Count(w.log.String(), "the audit log cannot be written"); n != 1 {
			t.Errorf("%d lines of the log about it", n)
		}
		d.full = false
		if r := c.call(http.MethodGet, "/v1/health", c.ip, nil); r.Code != http.StatusOK {
			t.Errorf("health %d %s", r.Code, r.Body)
		}
		accepted(t, w.task(3).ask())
	}, func(o *Options) { o.Audit = d })
}

// A handle that is presented while the log cannot be written stays good.
func TestHandleWaitsForTheAuditLog(t *testing.T) {
	t.Parallel()
	d := &disk{}
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		pushes := 0
		w.listen("10.0.1.1:8080", func(r *http.Request) int {
			if pushes++; pushes == 1 {
				d.full = true
				w.task(2).ask() // its line is lost
			}
			status := c.pushed(r)
			d.full = false
			return status
		})
		id := accepted(t, c.ask())
		advance(5 * time.Second)
		testkit.Equal(t, "request", w.state(id), receiver.Status{RequestID: id, State: "active", Attempts: 2})
		testkit.Equal(t, "tokens", len(w.backend.made), 1)
	}, func(o *Options) { o.Audit = d })
}

// The log states how many lines are missing, and a line that was written in part spoils no
// other.
func TestAuditLogStatesWhatItLost(t *testing.T) {
	t.Parallel()
	for _, room := range []int{0, 20} {
		d, failures := &disk{room: room}, 0
		a := newAudit(d, "fake", func(error) { failures++ })
		a.write(line{Request: "r1"})
		d.full = true
		a.write(line{Request: "r2"})
		a.write(line{Request: "r3"})
		d.full = false
		a.write(line{Request: "r4"})
		texts := strings.Split(strings.TrimSpace(d.String()), "\n")
		if failures != 2 {
			t.Errorf("%d failures were reported", failures)
		}
		for i, part := range []string{`"request":"r4"`, `"lost":2`, `"decision":"lines_lost"`} {
			if got := texts[len(texts)-1-min(i, 1)]; !strings.Contains(got, part) {
				t.Errorf("room %d: no %s in the line %s", room, part, got)
			}
		}
	}
}

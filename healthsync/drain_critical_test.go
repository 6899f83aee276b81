package healthsync

import (
	"errors"
	"testing"
	"time"
)

// TestRefusedCriticalDoesNotEndTheOthers: each check is repeated until Consul takes it.
func TestRefusedCriticalDoesNotEndTheOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"a", "b"}, func(r *fixture) {
		r.metadata.set(map[string]string{"a": "HEALTHY", "b": "HEALTHY"}, nil)
		r.run()
		r.advance(500 * time.Millisecond)
		r.agent.setAnswer(func(o op) error {
			if o.Check == "a" {
				return errDenied
			}
			return map[bool]error{true: errServer}[o.At < 5*sec]
		})
		took, err := r.term()
		if took < 4*sec {
			t.Errorf("took %s, want at least 4 s", took)
		}
		wantFailure(t, err, 3)
		if !errors.Is(err, errDenied) {
			t.Errorf("error %v, want %v", err, errDenied)
		}
		r.wantStatus("b", "critical")
	})
}

func TestErrorOfEachCriticalIsReported(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"a", "b"}, func(r *fixture) {
		r.metadata.set(map[string]string{"a": "HEALTHY", "b": "HEALTHY"}, nil)
		r.run()
		r.advance(500 * time.Millisecond)
		r.agent.setAnswer(func(o op) error { return map[string]error{"a": errDenied, "b": errServer}[o.Check] })
		_, err := r.term()
		wantFailure(t, err, 3)
		if !errors.Is(err, errDenied) || !errors.Is(err, errServer) {
			t.Errorf("error %v, want %v and %v", err, errDenied, errServer)
		}
	})
}

func TestHungWriteDoesNotDelayTheDrain(t *testing.T) {
	t.Parallel()
	for name, health := range map[string]string{"passing": "HEALTHY", "critical": "UNHEALTHY"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, []string{"app"}, func(r *fixture) {
				r.agent.checks["app"] = &ttlCheck{status: "passing", ttl: 100000 * time.Hour}
				r.agent.setAnswer(func(o op) error {
					if o.Verb == "ensure" {
						return errHang
					}
					return nil
				})
				r.metadata.set(healthOf(health), nil)
				r.run()
				r.advance(500 * time.Millisecond)
				r.agent.recorded()
				took, err := r.term()
				// A write that was cut off costs one repetition.
				want := []op{
					{500 * time.Millisecond, "set", "app", "critical"},
					{1500 * time.Millisecond, "set", "app", "critical"},
				}
				if err != nil || took > sec {
					t.Errorf("took %s, %v", took, err)
				}
				r.wantOps(want...)
				if n := r.logged("WARN"); n != 0 {
					t.Errorf("an orderly stop warns:\n%s", r.log)
				}
			})
		})
	}
}

func TestCutOffPassingWriteLosesAgainstCritical(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		r.agent.late = 900 * time.Millisecond
		r.agent.setAnswer(func(o op) error {
			if o.Status == "passing" {
				return errHang
			}
			return nil
		})
		r.advance(7700 * time.Millisecond) // the refresh of 10 s hangs
		if _, err := r.term(); err != nil {
			t.Error(err)
		}
		r.advance(5 * sec)
		r.wantStatus("app", "critical")
		if got := r.agent.checks["app"].status; got != "critical" {
			t.Errorf("last applied: %s", got)
		}
	})
}

// Another check that fails, once or until the end, does not spare the repetition.
func TestCutOffPassingWriteLosesBesideAFailingCheck(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"refused": errDenied, "unanswered": errServer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, []string{"a", "b"}, func(r *fixture) {
				r.metadata.set(map[string]string{"a": "HEALTHY", "b": "HEALTHY"}, nil)
				r.run()
				r.advance(500 * time.Millisecond)
				r.agent.late = 900 * time.Millisecond
				r.agent.setAnswer(func(o op) error {
					switch {
					case o.Check == "a":
						return failure
					case o.Status == "passing":
						return errHang
					}
					return nil
				})
				r.advance(9700 * time.Millisecond) // the refresh of 10 s hangs
				if _, err := r.term(); !errors.Is(err, failure) {
					t.Errorf("%v, want %v", err, failure)
				}
				r.advance(5 * sec)
				r.wantStatus("b", "critical")
				if got := r.agent.checks["b"].status; got != "critical" {
					t.Errorf("last applied: %s", got)
				}
			})
		})
	}
}

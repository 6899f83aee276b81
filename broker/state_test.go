package broker

import (
	"slices"
	"testing"
	"time"
)

// TestStatesAreSafe goes through all states that events can reach from the first one.
func TestStatesAreSafe(t *testing.T) {
	t.Parallel()
	reached := map[state]bool{}
	pending := []state{{Phase: Received}}
	for len(pending) > 0 {
		s := pending[0]
		pending = pending[1:]
		if reached[s] {
			continue
		}
		reached[s] = true
		for e := taskConfirmed; e <= tokenEnded; e++ {
			next, actions, changed := s.next(e)
			if !changed {
				if next != s || len(actions) > 0 {
					t.Errorf("%v, event %d: changed to %v with %v and reports no change", s, e, next, actions)
				}
				continue
			}
			checkTransition(t, s, e, next, actions)
			pending = append(pending, next)
		}
	}
	for _, want := range []state{
		{Received, false}, {Verified, false}, {Wrapped, false}, {Pushing, false}, {Pushing, true}, {Accepted, false},
		{Accepted, true},
		{Active, true}, {Rejected, false}, {Conflict, false}, {Expired, false}, {Expired, true}, {Failed, false},
		{Failed, true}, {Revoked, false}, {Revoked, true},
	} {
		if !reached[want] {
			t.Errorf("%v is never reached", want)
		}
		delete(reached, want)
	}
	if len(reached) > 0 {
		t.Errorf("also reached: %v", reached)
	}
}

func checkTransition(t *testing.T, s state, e event, next state, actions []action) {
	t.Helper()
	if s.Redeemed && !next.Redeemed {
		t.Errorf("%v, event %d: %v forgets the redemption", s, e, next)
	}
	redeems, mayRedeem := next.Redeemed && !s.Redeemed, e == redeemed && s.open()
	if redeems && !mayRedeem {
		t.Errorf("%v, event %d: redeemed", s, e)
	}
	activates, mayActivate := next.Phase == Active, s.Redeemed && e == taskConfirmed
	if activates && !mayActivate {
		t.Errorf("%v, event %d: active", s, e)
	}
	// Whatever ends without the token having ended by itself is revoked, here or by postRevoke.
	ends, ended := next.final() && next.Phase != Rejected, e == tokenEnded || e == returned
	if revoke := slices.Contains(actions, doRevoke) || ended; ends && !revoke {
		t.Errorf("%v, event %d: %v and no revocation", s, e, next)
	}
	if alarm := slices.Contains(actions, doAlarm); alarm != (e == misused || e == unredeemed) {
		t.Errorf("%v, event %d: alarm %v", s, e, alarm)
	}
}

func TestPausesBetweenPushes(t *testing.T) {
	t.Parallel()
	want := []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
		8 * time.Second, 8 * time.Second}
	for attempt, middle := range want {
		low, high := time.Hour, time.Duration(0)
		for range 2000 {
			p := pushPause(attempt)
			low, high = min(low, p), max(high, p)
		}
		if low < middle*8/10 || high > middle*12/10+1 {
			t.Errorf("attempt %d: %s to %s, want %s +-20 %%", attempt, low, high, middle)
		}
		if middle > 0 && high-low < middle*3/10 {
			t.Errorf("attempt %d: %s to %s: no jitter", attempt, low, high)
		}
	}
	if p := pushPause(1000); p > 9600*time.Millisecond+1 {
		t.Errorf("attempt 1000: %s", p)
	}
}

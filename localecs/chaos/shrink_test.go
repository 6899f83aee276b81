package chaos

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestShrinkFindsTheTwoThatMatter(t *testing.T) {
	t.Parallel()
	s := time.Second
	down := Event{At: 20 * s, For: 12 * s, Fault: &Fault{Server: Down}}
	whole := Schedule{For: time.Minute, Events: []Event{
		{At: 3 * s, For: 2 * s, Unhealthy: "api-2"},
		{At: 8 * s, For: 2 * s, Fault: &Fault{Endpoint: &Endpoint{Name: STS, Hang: true}}},
		{At: 12 * s, For: 2 * s, Fault: &Fault{Slow: &Process{Task: "web", Container: "web"}}},
		down,
		replaced(Event{At: 25 * s, Stop: "api-1"}, "api-r1", "api-1"),
		{At: 50 * s, For: 2 * s, Unhealthy: "api-3"},
	}}
	runs := 0
	fails := func(x Schedule) bool {
		runs++
		server := slices.IndexFunc(x.Events, func(e Event) bool { return e.Kind() == "server" })
		stop := slices.IndexFunc(x.Events, func(e Event) bool { return e.Kind() == "stop" })
		return server >= 0 && stop >= 0 && x.Events[stop].At < x.Events[server].End()
	}
	got := Shrink(whole, hello(), 40, fails)
	const want = "  1.00s Consul server down for 6s\n  6.00s stop api-1, start api-r1\n"
	if got.String() != want || got.For != 12*s {
		t.Errorf("after %d runs, for %s:\n%s", runs, got.For, got)
	}
	if whole.Events[3].For != 12*s {
		t.Error("the schedule that was given has changed")
	}
}

func TestShrinkKeepsItsBudgetAndSoundSchedules(t *testing.T) {
	t.Parallel()
	whole := Generate(random(5), 2*time.Minute, hello())
	runs := 0
	got := Shrink(whole, hello(), 7, func(s Schedule) bool {
		runs++
		if !s.sound(hello()) {
			t.Errorf("not sound:\n%s", s)
		}
		return false
	})
	if runs != 7 || got.String() != whole.String() {
		t.Errorf("%d runs, want 7; shrunk to\n%s", runs, got)
	}
	if one := Shrink(whole, hello(), 0, func(Schedule) bool {
		t.Error("ran")
		return true
	}); one.String() != whole.String() {
		t.Error("shrunk without a run")
	}
	if none := Shrink(whole, hello(), 1000, func(Schedule) bool {
		return true
	}); len(none.Events) > 1 || strings.Count(none.String(), "\n") > 1 {
		t.Errorf("what always fails shrinks to\n%s", none)
	}
}

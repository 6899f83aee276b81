package controller

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

const (
	task1 = "11111111111111111111111111111111"
	task2 = "22222222222222222222222222222222"
)

// noon is when the tables' snapshots are read, by Consul's clock.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// identifier is the form of a metric's label value.
var identifier = regexp.MustCompile(`^[a-z_]*$`)

func tokenOf(task string, age time.Duration) Token {
	return Token{Accessor: "a-" + task[:1], Method: "m", Task: task, Created: noon.Add(-age), Sure: true}
}

func serviceOf(task string) Service {
	return Service{Node: "n-" + task[:1], ID: "web-" + task, Task: task, Sure: true}
}

func missingSince(d time.Duration) memory { return memory{missing: map[string]time.Duration{task1: d}} }

func observed(last, desired string) map[string]observation {
	return map[string]observation{task1: {Last: last, Desired: desired}}
}

// TestDecide decides about one task with a token and a service; the table varies what is
// known of it. A pass is at 600 s of the Cleaner's clock.
func TestDecide(t *testing.T) {
	t.Parallel()
	const now = 600 * time.Second
	day := 24 * time.Hour
	tests := map[string]struct {
		running  bool
		observed map[string]observation
		before   memory
		age      time.Duration
		noTokens bool
		unsure   bool
		noDate   bool

		evidence string
		why      KeepReason
		again    time.Duration
		missing  time.Duration // that is remembered, 0 for not
	}{
		"listed as running": {running: true, age: day},
		"observed stopped": {observed: observed("STOPPED", "STOPPED"), age: day,
			evidence: "ECS shows the task as STOPPED"},
		"seen stopped, made a second ago": {
			observed: observed("STOPPED", "STOPPED"), age: time.Second, evidence: "ECS shows the task as STOPPED",
		},
		"draining":     {observed: observed("RUNNING", "STOPPED"), age: day, why: KeepStopping},
		"deactivating": {observed: observed("DEACTIVATING", "STOPPED"), age: day, why: KeepStopping},
		"stopping":     {observed: observed("STOPPING", "STOPPED"), age: day, why: KeepStopping},
		"gone but for its network": {
			observed: observed("DEPROVISIONING", "STOPPED"), age: day, why: KeepStopping,
		},
		"wanted stopped, already missing before": {
			observed: observed("RUNNING", "STOPPED"), before: missingSince(time.Second), age: day, why: KeepStopping,
		},
		"pending":                    {observed: observed("PENDING", "RUNNING"), age: day, why: KeepRunning},
		"running, not in the list":   {observed: observed("RUNNING", "RUNNING"), age: day, why: KeepRunning},
		"an unknown status":          {observed: observed("HIBERNATING", "RUNNING"), age: day, why: KeepRunning},
		"an answer without a status": {observed: observed("", ""), age: day, why: KeepUnknown},
		"no answer":                  {age: day, why: KeepUnknown},
		"missing for the first time": {
			observed: observed("MISSING", ""), age: day, why: KeepMissingRecheck, again: time.Minute, missing: now,
		},
		"missing again, too soon": {
			observed: observed("MISSING", ""), before: missingSince(541 * time.Second), age: day,
			why: KeepMissingRecheck, again: time.Second, missing: 541 * time.Second,
		},
		"missing again": {
			observed: observed("MISSING", ""), before: missingSince(540 * time.Second), age: day,
			missing:  540 * time.Second,
			evidence: "ECS reported the task MISSING in every check for 1m0s; newest token created 24h0m0s ago",
		},
		"missing again, with a token that is young": {
			observed: observed("MISSING", ""), before: missingSince(540 * time.Second), age: 299 * time.Second,
			why: KeepMissingYoung, again: time.Second, missing: 540 * time.Second,
		},
		"missing again, just old enough": {
			observed: observed("MISSING", ""), before: missingSince(540 * time.Second), age: 300 * time.Second,
			missing:  540 * time.Second,
			evidence: "ECS reported the task MISSING in every check for 1m0s; newest token created 5m0s ago",
		},
		"missing for long, with a token of the future": {
			observed: observed("MISSING", ""), before: missingSince(0), age: -time.Hour,
			evidence: "ECS reported the task MISSING in every check for 10m0s; first missing 10m0s ago",
		},
		"missing for long, with a token by a clock that is ahead": {
			observed: observed("MISSING", ""), before: missingSince(0), age: -299 * time.Second, why: KeepMissingYoung,
			again: 599 * time.Second,
		},
		"no answer after missing": {before: missingSince(540 * time.Second), age: day, why: KeepUnknown},
		"running after missing":   {running: true, before: missingSince(540 * time.Second), age: day},
		"missing, without a token that shows the age": {
			observed: observed("MISSING", ""), before: missingSince(301 * time.Second), noTokens: true,
			why: KeepMissingYoung, again: time.Second, missing: 301 * time.Second,
		},
		"missing for long, without a token": {
			observed: observed("MISSING", ""), before: missingSince(300 * time.Second), noTokens: true,
			missing:  300 * time.Second,
			evidence: "ECS reported the task MISSING in every check for 5m0s; first missing 5m0s ago",
		},
		"missing for long, and Consul's answer has no time": {
			observed: observed("MISSING", ""), before: missingSince(301 * time.Second), age: day, noDate: true,
			why: KeepMissingYoung, again: time.Second, missing: 301 * time.Second,
		},
		"missing for long, perhaps another cluster's": {
			observed: observed("MISSING", ""), before: missingSince(60 * time.Second), age: day, unsure: true,
			why: KeepMissingAmbiguous, missing: 60 * time.Second,
		},
		"perhaps another cluster's, seen stopped in ours": {
			observed: observed("STOPPED", "STOPPED"), age: day, unsure: true, evidence: "ECS shows the task as STOPPED",
		},
		"perhaps another cluster's, seen in ours before": {
			observed: observed("MISSING", ""), age: day, unsure: true, missing: 60 * time.Second,
			before: memory{missing: map[string]time.Duration{task1: 60 * time.Second},
				ours: map[string]struct{}{task1: {}}},
			evidence: "ECS reported the task MISSING in every check for 9m0s; newest token created 24h0m0s ago",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &snapshot{ConsulTime: noon, AskedAt: now, Observations: tc.observed,
				Running: map[string]struct{}{task2: {}}, Services: []Service{serviceOf(task1)}}
			if !tc.noTokens {
				s.Tokens = []Token{tokenOf(task1, tc.age)}
			}
			if tc.unsure {
				s.Tokens[0].Sure, s.Services[0].Sure = false, false
			}
			if tc.running {
				s.Running[task1] = struct{}{}
			}
			if tc.noDate {
				s.ConsulTime = time.Time{}
			}
			plan, after := decide(s, tc.before, now, defaultLimits())
			evidence := ""
			for _, i := range plan.Delete {
				evidence = i.Evidence
				want := ReasonMissing
				if strings.Contains(evidence, "STOPPED") {
					want = ReasonStopped
				}
				testkit.Equal(t, "reason of evidence "+evidence, i.Reason, want)
			}
			if want := len(s.Tokens) + 1; evidence != "" && len(plan.Delete) != want {
				t.Errorf("%d deletions, want %d", len(plan.Delete), want)
			}
			if evidence != tc.evidence {
				t.Errorf("evidence %q, want %q", evidence, tc.evidence)
			}
			var kept RetainedTask
			if len(plan.Kept) > 0 {
				kept = plan.Kept[0]
			}
			if kept.Reason != tc.why || kept.Again != tc.again {
				t.Errorf("kept because %q, again in %s, want %q, %s", kept.Reason, kept.Again, tc.why, tc.again)
			}
			if !identifier.MatchString(string(kept.Reason)) {
				t.Errorf("%q is no value for a metric's label", kept.Reason)
			}
			if got := after.missing[task1]; got != tc.missing {
				t.Errorf("remembered as missing since %s, want %s", got, tc.missing)
			}
		})
	}
}

// Everything of a dead task goes, nothing of others, in an order that is always
// the same.
func TestDecideDeletesAllOfATask(t *testing.T) {
	t.Parallel()
	proxy := serviceOf(task1)
	proxy.ID += "-sidecar-proxy"
	second := tokenOf(task1, time.Hour)
	second.Accessor = "a-0"
	s := &snapshot{
		ConsulTime: noon, Running: map[string]struct{}{},
		Tokens:       []Token{tokenOf(task2, time.Hour), tokenOf(task1, time.Hour), second},
		Services:     []Service{proxy, serviceOf(task2), serviceOf(task1)},
		Observations: map[string]observation{task1: {Last: "STOPPED"}, task2: {Last: "RUNNING", Desired: "STOPPED"}},
	}
	plan, _ := decide(s, memory{}, 0, defaultLimits())
	const proof = "ECS shows the task as STOPPED"
	want := []Item{
		{Kind: "service", Task: task1, Node: "n-1", Service: "web-" + task1, Reason: ReasonStopped, Evidence: proof},
		{Kind: "service", Task: task1, Node: "n-1", Service: "web-" + task1 + "-sidecar-proxy",
			Reason: ReasonStopped, Evidence: proof},
		{Kind: "token", Task: task1, Accessor: "a-0", Method: "m", Reason: ReasonStopped, Evidence: proof},
		{Kind: "token", Task: task1, Accessor: "a-1", Method: "m", Reason: ReasonStopped, Evidence: proof},
	}
	if d := cmp.Diff(want, plan.Delete); d != "" {
		t.Errorf("deletions (-want +got):\n%s", d)
	}
	if d := cmp.Diff(
		[]RetainedTask{{Task: task2, Reason: KeepStopping, Detail: "last status RUNNING", Tokens: 1, Services: 1}},
		plan.Kept); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
}

// A task of which one thing names the cluster by its ARN is ours with all it has.
func TestDecideUsesTheMostReliableLeftover(t *testing.T) {
	t.Parallel()
	unsure := tokenOf(task1, time.Hour)
	unsure.Sure = false
	s := &snapshot{
		ConsulTime: noon, AskedAt: time.Hour, Running: map[string]struct{}{}, Tokens: []Token{unsure},
		Services:     []Service{serviceOf(task1)},
		Observations: map[string]observation{task1: {Last: awsutil.TaskMissing}},
	}
	plan, after := decide(s, missingSince(0), time.Hour, defaultLimits())
	if len(plan.Delete) != 2 {
		t.Errorf("plan = %+v", plan)
	}
	// Its service is gone by then, and with it what was sure.
	s.Services = nil
	if plan, _ = decide(s, after, time.Hour, defaultLimits()); len(plan.Delete) != 1 {
		t.Errorf("plan without the service = %+v", plan)
	}
}

// What Consul did not show is still known to be ours.
func TestDecideRetainsLeftoversThatConsulOmits(t *testing.T) {
	t.Parallel()
	before := memory{missing: map[string]time.Duration{task1: time.Second}, ours: map[string]struct{}{task1: {}}}
	s := &snapshot{Partial: true, Running: map[string]struct{}{}}
	if _, after := decide(s, before, time.Hour, defaultLimits()); len(after.missing) != 0 || len(after.ours) != 1 {
		t.Errorf("after = %v", after)
	}
	s.Partial = false
	if _, after := decide(s, before, time.Hour, defaultLimits()); len(after.missing)+len(after.ours) != 0 {
		t.Errorf("after a whole snapshot = %v", after)
	}
}

// bound returns how long after a task's end its leftovers are gone at the latest, if
// Consul and ECS answer: a pass that began just before sees nothing, then comes the
// pause, and the pass that removes them. known is for tasks whose end ECS still
// shows, forgotten for others, counted from when the controller first looked: another
// pass may begin just too early to confirm it.
func bound(l limits, pause, pass time.Duration) (known, forgotten time.Duration) {
	known = pause + 2*pass
	return known, known + max(l.grace, l.minAbsence) + known
}

// TestBoundsOfThePage: the table "When" of docs/CONTROLLER.md. The model holds the
// bound, and the controller's tests the pause.
func TestBoundsOfThePage(t *testing.T) {
	t.Parallel()
	for pass, want := range map[time.Duration]struct{ known, forgotten time.Duration }{
		time.Second:      {38 * time.Second, 6*time.Minute + 16*time.Second},
		18 * time.Second: {72 * time.Second, 7*time.Minute + 24*time.Second},
	} {
		if known, forgotten := bound(defaultLimits(), 36*time.Second, pass); known != want.known ||
			forgotten != want.forgotten {
			t.Errorf("passes of %s: gone after %s and %s, want %s and %s",
				pass, known, forgotten, want.known, want.forgotten)
		}
	}
}

// TestDecideIgnoresAJumpingClock: an hour that Consul's clock skips makes no
// token old, until it has gone with ours for the time of grace.
func TestDecideIgnoresAJumpingClock(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{"forwards": time.Hour, "and back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &snapshot{
				ConsulTime: noon, Running: map[string]struct{}{}, Tokens: []Token{tokenOf(task1, 2*time.Hour)},
				Observations: map[string]observation{task1: {Last: awsutil.TaskMissing},
					task2: {Last: awsutil.TaskMissing}},
			}
			_, m := decide(s, memory{}, 0, defaultLimits())
			young := tokenOf(task2, 0)
			s.Tokens = append(s.Tokens, young)
			look := func(at time.Duration) (dead []string) {
				var plan Plan
				s.ConsulTime, s.ConsulAt, s.AskedAt = noon.Add(jump+at), at, at
				plan, m = decide(s, m, at, defaultLimits())
				for _, i := range plan.Delete {
					dead = append(dead, i.Task)
				}
				return dead
			}
			for _, at := range []time.Duration{time.Second, 70 * time.Second, 200 * time.Second, 299 * time.Second} {
				if dead := look(at); dead != nil {
					t.Errorf("%s after the first look %v is dead", at, dead)
				}
			}
			// Missing for the time of grace by our own clock.
			if dead := look(300 * time.Second); !slices.Equal(dead, []string{task1}) {
				t.Errorf("dead after five minutes: %v", dead)
			}
		})
	}
}

// TestDecideCountsFromTheEndOfALookToTheBeginningOfTheNext: a pass that AWS
// throttles takes minutes, in which no task was looked up twice.
func TestDecideCountsFromTheEndOfALookToTheBeginningOfTheNext(t *testing.T) {
	t.Parallel()
	s := &snapshot{
		ConsulTime: noon, Running: map[string]struct{}{}, Tokens: []Token{tokenOf(task1, time.Hour)},
		Observations: map[string]observation{task1: {Last: awsutil.TaskMissing}},
	}
	_, m := decide(s, memory{}, 90*time.Second, defaultLimits())
	look := func(began, ended time.Duration) int {
		t.Helper()
		s.ConsulTime, s.ConsulAt, s.AskedAt = noon.Add(began), began, began
		var plan Plan
		plan, m = decide(s, m, ended, defaultLimits())
		if m.trusted != 0 {
			t.Error("a long pass was taken for a jump of Consul's clock")
		}
		return len(plan.Delete)
	}
	if n := look(100*time.Second, 190*time.Second); n != 0 {
		t.Errorf("%d deletions ten seconds after the first look", n)
	}
	if n := look(200*time.Second, 200*time.Second); n != 1 {
		t.Errorf("%d deletions after two minutes", n)
	}
}

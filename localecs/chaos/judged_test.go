package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestMostOfAScheduleIsJudged computes the figures in docs/localecs/chaos.md.
func TestMostOfAScheduleIsJudged(t *testing.T) {
	t.Parallel()
	w := hello()
	w.Tasks = append(w.Tasks, w.Tasks[0])
	w.Tasks[4].Name = "api-4"
	for _, length := range []time.Duration{time.Minute, 3 * time.Minute} {
		seeds := testkit.Share(400 / int(length/time.Minute))
		var shares []float64
		for seed := range uint64(seeds) {
			shares = append(shares, Generate(random(seed), length, w).Judged(w))
		}
		slices.Sort(shares)
		t.Logf("%s: least %.2f, a tenth below %.2f, median %.2f", length, shares[0], shares[seeds/10],
			shares[seeds/2])
		if shares[0] <= LeastJudged {
			t.Errorf("%s: got a judged share of %.2f, want more than %.2f", length, shares[0], LeastJudged)
		}
	}
}

func TestJudgedShareOfASchedule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []Event
		want   float64
	}{
		"nothing":                    {nil, 1},
		"an Envoy":                   {[]Event{kill(10*s, "api-1", "sidecar-proxy", "envoy")}, 0.99},
		"a window that the end cuts": {[]Event{partition(90*s, 10*s, "api-1", All)}, 0.9},
		"windows that overlap": {[]Event{partition(10*s, 12*s, "api-1", All),
			freeze(20*s, 12*s, "api-2", "sidecar-proxy")}, 0.7},
		"a wide link": {[]Event{link(10*s, 10*s, narrow)}, 1},
		"a task that is replaced while updates are late": {[]Event{partition(10*s, 5*s, "web", Server),
			replaced(Event{At: 12 * s, Stop: "api-1"}, "api-r1", "api-1")}, 0.9},
		"a task that is replaced": {[]Event{replaced(Event{At: 12 * s, Stop: "api-1"}, "api-r1", "api-1")}, 1},
		"a narrow link":           {[]Event{link(10*s, 12*s, narrow-1)}, 0.8},
	} {
		got := Schedule{For: 100 * s, Events: c.events}.Judged(helloDefinition())
		if (got-c.want)*(got-c.want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func link(at, long time.Duration, kbits int) Event {
	return Event{At: at, For: long, Fault: &Fault{Link: &Link{Task: "api-1", KBits: kbits}}}
}

// changes are what a run has shown beside what is well.
type changes []func(*Observed)

// one counts one lost request by each explanation.
func one(by ...string) map[string]int {
	counts := map[string]int{}
	for _, name := range by {
		counts[name] = 1
	}
	return counts
}

// TestRequestsAreExplainedByWhatCanCauseTheirLoss looks at the share and the names in a verdict.
func TestRequestsAreExplainedByWhatCanCauseTheirLoss(t *testing.T) {
	t.Parallel()
	cut := partition(42800*time.Millisecond, 12700*time.Millisecond, "web", All)
	lost := changes{}
	for i := range 113 {
		at := 51900*time.Millisecond + time.Duration(i)*56*time.Millisecond
		lost = append(lost, failed(at, at+s/100))
	}
	const byPartition = "partition all entry: the traffic enters through this task (its only entry point)"
	out := func(o *Observed) { // api-1, noticed after 5 s
		o.Traffic = slices.Insert(o.Traffic, 3, TrafficChange{15 * s, "api-1", false},
			TrafficChange{40 * s, "api-1", true})
	}
	cutOff := []Event{partition(10*s, 20*s, "api-1", All)}
	const byGossip = "partition all instance: gossip finds its agent failed (COMPATIBILITY.md, gossip, which finds " +
		"it failed after some seconds)"
	stop := Event{At: 10 * s, Stop: "api-1"}
	late, apart := []Event{server(5*s, 10*s), stop}, []Event{partition(5*s, 10*s, "web", Server), stop}
	slowAgent := Event{At: 20 * s, For: 10 * s, Fault: &Fault{Slow: &Process{Task: "api-1",
		Container: "consul-client"}}}
	stopped := func(at time.Duration) func(*Observed) {
		return func(o *Observed) { *o = ended(10*s, 20*s, at) }
	}
	answers := func(at time.Duration, n int) func(*Observed) {
		return func(o *Observed) {
			for range n {
				o.Requests = append(o.Requests, Request{Start: at, End: at + s/100})
			}
		}
	}
	for name, c := range map[string]struct {
		events []Event
		seen   changes
		want   map[string]int
	}{
		"a wide link, and the entry is cut off": {[]Event{link(40*s, 8200*time.Millisecond, 4000), cut}, lost,
			map[string]int{byPartition: 113}},
		"a wider window, and the entry is cut off": {[]Event{freeze(20*s, 40*s, "web", "sidecar-proxy"), cut}, lost,
			map[string]int{byPartition: 113}},
		"an instance is cut off":                    {cutOff, changes{out, failed(14*s, 16*s)}, one(byGossip)},
		"an instance is cut off, and is not called": {cutOff, changes{out, failed(26*s, 27*s)}, one()},
		"a stopped task is called for long": {late, changes{stopped(25 * s), failed(32*s, 33*s)},
			one(lateUpdate)},
		"a stopped task is called no more": {[]Event{server(5*s, 6*s), stop, slowAgent},
			changes{stopped(13 * s), failed(36*s, 37*s)}, one()},
		"a stopped task is called after answers, since a server started": {late,
			changes{stopped(25 * s), answers(16*s, 60), failed(32*s, 33*s)}, one(lateUpdate)},
		"a stopped task is not called after answers of a server that runs": {apart,
			changes{stopped(25 * s), answers(16*s, 60), failed(32*s, 33*s)}, one()},
		"a stopped task is called after fewer answers": {apart,
			changes{stopped(25 * s), answers(16*s, 59), failed(32*s, 33*s)}, one(lateUpdate)},
	} {
		schedule := Schedule{For: time.Minute, Events: c.events}
		seen := well()
		for _, change := range c.seen {
			seen = with(seen, change)
		}
		got := Check(schedule, helloDefinition(), Allowances(schedule, helloDefinition()), seen).Allowed
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: explained requests (-want +got):\n%s", name, d)
		}
	}
}

func TestVerdictHasTheJudgedShareOfRequests(t *testing.T) {
	t.Parallel()
	schedule := schedule(kill(10*s, "api-1", "sidecar-proxy", "envoy"))
	seen := ended(10*s, 20*s, 10*s)
	seen.Requests = []Request{{Start: 5 * s, End: 6 * s}, {Start: 10 * s, End: 11 * s}, {Start: 30 * s, End: 31 * s},
		{Start: 40 * s, End: 41 * s}, {Start: schedule.For, End: schedule.For + s}}
	got := Check(schedule, helloDefinition(), Allowances(schedule, helloDefinition()), seen).Judged
	testkit.Equal(t, "judged share", got, 0.75)
}

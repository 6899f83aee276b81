package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// A seed always gives the same schedule.
func TestSeedDeterminesTheSchedule(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, seed := range []uint64{1, 2, 3, 20261121} {
		fmt.Fprintf(&b, "seed %d\n%s", seed, Generate(random(seed), 2*time.Minute, hello()))
	}
	testkit.Golden(t, "schedules.txt", []byte(b.String()))
}

func TestSchedulesAreSoundAndPossible(t *testing.T) {
	t.Parallel()
	schedules, kinds, events := testkit.Share(300), map[string]int{}, 0
	for seed := range uint64(schedules) {
		s := Generate(random(seed), time.Minute, hello())
		if !s.sound(hello()) {
			t.Fatalf("seed %d is not sound:\n%s", seed, s)
		}
		w := Targets{Containers: map[string][]string{}}
		for _, i := range instances(s, hello()) {
			for _, c := range i.task.Containers {
				w.Containers[i.task.Name] = append(w.Containers[i.task.Name], c.Name)
			}
		}
		for _, err := range Problems(s.Faults(), w) {
			t.Errorf("seed %d: %v\n%s", seed, err, s)
		}
		names := map[string]bool{}
		for i, e := range s.Events {
			kinds[e.Kind()]++
			events++
			if e.End() > s.For {
				t.Errorf("seed %d: %s is not in its place", seed, e)
			}
			if i > 0 && e.At < s.Events[i-1].At {
				t.Errorf("seed %d: %s is not in its place", seed, e)
			}
			if e.By != "" && names[e.By] {
				t.Errorf("seed %d starts %s twice", seed, e.By)
			}
			names[e.By] = true
		}
	}
	for _, kind := range []string{"kill", "stop", "unhealthy", "freeze", "slow", "oom", "spot", "server", "partition",
		"link", "endpoint"} {
		if want := schedules / 15; kinds[kind] < want {
			t.Errorf("%d of %s in %d schedules, want %d or more: %v", kinds[kind], kind, schedules, want, kinds)
		}
	}
	if events < schedules*5 {
		t.Errorf("%d events in %d minutes, want 5 a minute", events, schedules)
	}
}

// TestEndpointsMisbehaveInEveryWay that their invariants say something about.
func TestEndpointsMisbehaveInEveryWay(t *testing.T) {
	t.Parallel()
	g := &generator{rand: random(1), topology: hello()}
	seen := map[string]bool{}
	for range 2000 {
		var e Event
		g.endpoint(&e, g.topology.Tasks[0])
		p := e.Fault.Endpoint
		seen[p.Name] = true
		if p.Skew != 0 {
			seen[fmt.Sprintf("%s %s", p.Name, p.Skew)] = true
		}
	}
	want := []string{
		"credentials", "ecs", "ecs -1h0m0s", "ecs -1m0s", "ecs 1h0m0s", "ecs 1m0s", "iam", "iam -1h0m0s", "iam -1m0s",
		"iam 1h0m0s", "iam 1m0s",
		"metadata", "protection", "sts", "sts -1h0m0s", "sts -1m0s", "sts 1h0m0s", "sts 1m0s",
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSound(t *testing.T) {
	t.Parallel()
	s := time.Second
	stop := func(at time.Duration, task string) Event { return Event{At: at, Stop: task} }
	frozen := func(at, long time.Duration, task string) Event {
		return Event{At: at, For: long, Fault: &Fault{Freeze: &Process{Task: task, Container: "sidecar-proxy"}}}
	}
	for name, c := range map[string]struct {
		events []Event
		want   bool
	}{
		"nothing":            {nil, true},
		"two of three end":   {[]Event{stop(s, "api-1"), stop(2*s, "api-2")}, true},
		"three of three end": {[]Event{stop(s, "api-1"), stop(2*s, "api-2"), stop(3*s, "api-3")}, false},
		"a replacement is there": {[]Event{replaced(stop(s, "api-1"), "api-r1", "api-1"), stop(2*s, "api-2"),
			stop(30*s, "api-3")}, true},
		"a replacement is not yet": {[]Event{replaced(stop(s, "api-1"), "api-r1", "api-1"), stop(2*s, "api-2"),
			stop(15*s, "api-3")}, false},
		"it starts while there is none": {[]Event{replaced(stop(s, "api-1"), "api-r1", "api-1"),
			{At: 2 * s, For: 10 * s, Fault: &Fault{Server: Down}}, stop(4*s, "api-2"), stop(30*s, "api-3")}, false},
		"disrupted one after the other": {[]Event{frozen(s, 5*s, "api-1"), frozen(2*s, 5*s, "api-2"),
			frozen(16*s, s, "api-3")}, true},
		"all disrupted": {[]Event{frozen(s, 5*s, "api-1"), frozen(2*s, 5*s, "api-2"),
			frozen(9*s, s, "api-3")}, false},
		"the entry":               {[]Event{stop(s, "web")}, false},
		"the entry's young agent": {[]Event{killed(s, "web", "consul-client", "consul")}, false},
		"the entry's older agent": {[]Event{killed(61*s, "web", "consul-client", "consul")}, true},
		"its agent that was killed before": {[]Event{killed(61*s, "web", "consul-client", "consul"),
			killed(90*s, "web", "consul-client", "")}, false},
		"one frozen twice": {[]Event{frozen(s, 5*s, "api-1"), frozen(5*s, 5*s, "api-1")}, false},
		"the dead":         {[]Event{stop(s, "api-1"), killed(2*s, "api-1", "api", "")}, false},
		"unknown":          {[]Event{stop(s, "db")}, false},
		"deaf":             {[]Event{{At: s, For: 3 * s, Unhealthy: "api-1"}, stop(4*s, "api-1")}, false},
		"hears":            {[]Event{{At: s, For: 3 * s, Unhealthy: "api-1"}, stop(6*s, "api-1")}, true},
	} {
		if got := (Schedule{For: 2 * time.Minute, Events: c.events}).sound(hello()); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestScheduleString(t *testing.T) {
	t.Parallel()
	s := Schedule{For: time.Minute, Events: []Event{
		replaced(killed(1500*time.Millisecond, "api-1", "sidecar-proxy", "envoy"), "api-r1", "api-1"),
		{At: 2 * time.Second, For: 3 * time.Second, Unhealthy: "api-2"},
		{At: 4 * time.Second, Stop: "api-r1"},
		{At: 5 * time.Second, For: time.Second, Fault: &Fault{Endpoint: &Endpoint{Name: STS, Hang: true}}},
	}}
	const want = "  1.50s kill -9 api-1/sidecar-proxy envoy, start api-r1\n  2.00s api-2 is unhealthy for 3s\n  " +
		"4.00s stop api-r1\n  5.00s sts hangs for 1s\n"
	if got := s.String(); got != want {
		t.Errorf("got\n%s", got)
	}
	faults := s.Faults()
	if len(faults) != 2 {
		t.Fatalf("faults %v", faults)
	}
	testkit.Equal(t, "faults[0].At", faults[0].At, 1500*time.Millisecond)
	testkit.Equal(t, "faults[1].For", faults[1].For, time.Second)
	again := s
	again.Events = append(again.Events, replaced(Event{At: 6 * time.Second, Stop: "api-r1"}, "api-r2", "api-r1"))
	if got := again.Task(hello(), "api-r2"); got.Family != "api" {
		t.Errorf("replacement of a replacement %+v", got)
	}
	if got := s.Survivors(hello()); !slices.Equal(got, []string{"api-2", "api-3", "web"}) {
		t.Errorf("survivors %v, want all but api-1 and its replacement", got)
	}
	if got := s.Task(hello(), "api-r1"); got.Family != "api" ||
		!slices.ContainsFunc(got.Containers, func(c Container) bool { return c.Name == "api" }) {
		t.Errorf("replacement %+v", got)
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event    Event
		task, on string
	}{
		{killed(0, "api-1", "consul-client", "consul"), "api-1", "agent"},
		{killed(0, "api-1", "consul-client", ""), "api-1", agentContainer},
		{killed(0, "web", "web", ""), "web", "application"},
		{Event{Fault: &Fault{OOM: &Process{Task: "api-1", Container: "consul-client"}}}, "api-1", agentContainer},
		{Event{Fault: &Fault{Partition: &Partition{Task: "api-1", From: Server}}}, "api-1", "server"},
		{Event{Fault: &Fault{Partition: &Partition{Task: "api-1", From: "web"}}}, "api-1", anotherTask},
		{Event{Fault: &Fault{Server: Down}}, "", "down"},
		{Event{Fault: &Fault{Endpoint: &Endpoint{Name: Metadata, Task: "web", Cut: true}}}, "web", "metadata"},
		{Event{Stop: "api-2"}, "api-2", ""},
	} {
		if task, on := c.event.target(hello(), Schedule{}); task.Name != c.task || on != c.on {
			t.Errorf("%s: %s of %q", c.event, on, task.Name)
		}
	}
}

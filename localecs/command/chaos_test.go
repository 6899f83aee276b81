package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/scenario/trial"
)

// seedWith is the first seed whose schedule of that length has exactly these
// kinds of events, in that order.
func seedWith(t *testing.T, scene string, length time.Duration, kinds ...string) uint64 {
	t.Helper()
	f, err := file.Load(example(scene))
	if err != nil {
		t.Fatal(err)
	}
	setting, err := trial.Take(f)
	if err != nil {
		t.Fatal(err)
	}
	for seed := uint64(1); seed < 100_000; seed++ {
		var got []string
		for _, e := range setting.Generate(seed, length).Events {
			got = append(got, e.Kind())
		}
		if slices.Equal(got, kinds) {
			return seed
		}
	}
	t.Fatalf("no seed has %v", kinds)
	return 0
}

// chaosRun is one object of the kind chaos.
type chaosRun struct {
	Kind             string
	Seed             uint64
	Answered, Failed int
	Events           []string
	Violations       []struct{ Invariant, Task, Text string }
	Shortest         string
	Reruns           int
}

// runChaosSeeds runs seeds and returns the exit code and what is said of each.
func runChaosSeeds(t *testing.T, scene string, flags ...string) (code int, runs []chaosRun, out string) {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { showLogs(t, dir) })
	got := call(t, append(append([]string{"run", "-json", "-dir", dir}, flags...), example(scene))...)
	for line := range strings.Lines(got.stdout) {
		var run chaosRun
		if err := json.Unmarshal([]byte(line), &run); err == nil && run.Kind == "chaos" {
			runs = append(runs, run)
		}
	}
	return got.code, runs, got.stdout + got.stderr
}

// A few seeds, short ones: `make chaos` has the long ones.
func TestChaosFindsNothingInHelloMesh(t *testing.T) {
	t.Parallel()
	flags := append(programs(t), "-chaos", "1", "-for", "25s", "-runs", "2", "-shrink", "0")
	code, runs, out := runChaosSeeds(t, "hello-mesh", flags...)
	if code != 0 || len(runs) != 2 || runs[0].Seed != 1 || runs[1].Seed != 2 {
		t.Fatalf("exit %d, runs %+v\n%s", code, runs, out)
	}
	for _, run := range runs {
		if len(run.Events) == 0 || run.Answered < 400 || len(run.Violations) != 0 {
			t.Errorf("%+v", run)
		}
	}
}

// The control: without a shutdown delay a stop costs requests, and nothing
// excuses them. It is caught, and shrunk to the stop.
func TestChaosCatchesWhatLosesRequests(t *testing.T) {
	t.Parallel()
	const length = 25 * time.Second
	seed := seedWith(t, "without-delay", length, "stop", "stop", "kill")
	flags := append(programs(t), "-chaos", fmt.Sprint(seed), "-for", length.String(), "-shrink", "4")
	code, runs, out := runChaosSeeds(t, "without-delay", flags...)
	if code != 2 || len(runs) != 1 {
		t.Fatalf("exit %d, runs %+v\n%s", code, runs, out)
	}
	run := runs[0]
	if len(run.Violations) == 0 || run.Violations[0].Invariant != "no request fails" {
		t.Errorf("violations %+v, want a lost request", run.Violations)
	}
	if run.Reruns == 0 || run.Reruns > 4 || !strings.Contains(run.Shortest, "background: true") || strings.Contains(run.Shortest, "kill:") {
		t.Errorf("after %d runs shrunk to\n%s", run.Reruns, run.Shortest)
	}
}

func TestChaosRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	vars := []string{"-var", "bin=/usr/bin", "-var", "consul=/bin/true", "-var", "envoy=/bin/true"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a seed that is none": {[]string{"-chaos", "x"}, "want a number from 0 to 2^64-1, or random, got"},
		"too long":            {[]string{"-chaos", "1", "-for", "2h"}, "-for: 2h0m0s: want 1s to 1h0m0s"},
		"no runs":             {[]string{"-chaos", "1", "-runs", "0"}, "want -runs of 1 or more"},
		"both orders":         {[]string{"-chaos", "1", "-stop-order", "both"}, "-chaos wants one -stop-order"},
		"two scenarios":       {[]string{"-chaos", "1", example("hello-mesh")}, "-chaos wants one scenario"},
	} {
		got := call(t, append(append(append([]string{"run"}, vars...), c.args...), example("hello-mesh"))...)
		if got.code != 1 || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: exit %d, %q; want %q", name, got.code, got.stderr, c.want)
		}
	}
}

package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// seedWith returns the first seed whose schedule of that length begins with such an
// event, has no other one, and as many in all.
func seedWith(t *testing.T, scene string, length time.Duration, kind string, events int) uint64 {
	t.Helper()
	f, err := file.Load(example(scene))
	if err != nil {
		t.Fatal(err)
	}
	setting, err := scenario.NewChaosSetup(f)
	if err != nil {
		t.Fatal(err)
	}
	for seed := uint64(1); seed < 100_000; seed++ {
		n, all := 0, setting.Generate(seed, length).Events
		for _, e := range all {
			if e.Kind() == kind {
				n++
			}
		}
		if n == 1 && len(all) == events && all[0].Kind() == kind {
			return seed
		}
	}
	t.Fatalf("no seed has a %s and %d more", kind, events-1)
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

// A few seeds, short ones, one in each stop order: `make chaos` has the long ones.
// Only when all are signalled at once does an Envoy that ends too early cost requests.
func TestEndToEndChaosFindsNothing(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	vars := programs(t)
	for i, order := range []string{"reverse", "at-once"} {
		flags := append(slices.Clone(vars), "-chaos", fmt.Sprint(i+1), "-for", "25s", "-shrink", "0", "-stop-order", order)
		code, runs, out := runChaosSeeds(t, "chaos", flags...)
		if code != 0 || len(runs) != 1 || runs[0].Seed != uint64(i+1) {
			t.Fatalf("%s: exit %d, runs %+v\n%s", order, code, runs, out)
		}
		if run := runs[0]; len(run.Events) == 0 || run.Answered < 400 || len(run.Violations) != 0 {
			t.Errorf("%s: %+v", order, run)
		}
	}
}

// The control: without a shutdown delay an orderly end costs requests, and nothing
// allowances them. It is caught, and shrunk to fewer events, such an end among them.
func TestEndToEndChaosCatchesWhatLosesRequests(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const length = 20 * time.Second
	seed := seedWith(t, "without-delay", length, "stop", 4)
	flags := append(programs(t), "-chaos", fmt.Sprint(seed), "-for", length.String(), "-shrink", "2")
	code, runs, out := runChaosSeeds(t, "without-delay", flags...)
	if code != 2 || len(runs) != 1 {
		t.Fatalf("exit %d, runs %+v\n%s", code, runs, out)
	}
	run := runs[0]
	if len(run.Violations) == 0 || run.Violations[0].Invariant != "no request fails" {
		t.Errorf("violations %+v, want a lost request", run.Violations)
	}
	ends := strings.Contains(run.Shortest, "background: true") || strings.Contains(run.Shortest, "spot: ")
	if n := eventsOf(t, run.Shortest); run.Reruns == 0 || run.Reruns > 2 || len(run.Events) != 4 || n >= 4 || !ends {
		t.Errorf("of %q, after %d runs, %d are left:\n%s", run.Events, run.Reruns, n, run.Shortest)
	}
}

// An application that exits ends the run with its reason, and no shorter schedule is run.
func TestEndToEndChaosEndsWithABrokenApplication(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	vars := programs(t)
	bin := t.TempDir()
	if err := os.Symlink(filepath.Join(testkit.Programs(t), "consul-ecs"), filepath.Join(bin, "consul-ecs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/false", filepath.Join(bin, "hello")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	code, runs, out := runChaosSeeds(t, "chaos", append(vars, "-var", "bin="+bin, "-chaos", "1", "-shrink", "3")...)
	testkit.Equal(t, "exit code", code, 2)
	if len(runs) != 1 {
		t.Fatalf("runs %+v, want one\n%s", runs, out)
	}
	if text := fmt.Sprint(runs[0].Violations); !strings.Contains(text, "stopped unexpectedly") {
		t.Errorf("violations %s, want that a task stopped unexpectedly", text)
	}
	testkit.Equal(t, "runs of shorter schedules", runs[0].Reruns, 0)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("ended after %s, want less than a minute", took)
	}
}

// eventsOf counts those of a schedule by its steps.
func eventsOf(t *testing.T, text string) (n int) {
	t.Helper()
	var scene struct {
		Steps []file.Step `yaml:"steps"`
	}
	if err := yaml.Unmarshal([]byte(text), &scene); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, s := range scene.Steps {
		n += len(s.Faults)
		if s.Stop != nil && s.Stop.Background || s.Post != nil && strings.HasSuffix(s.Post.URL, "/fail") {
			n++
		}
	}
	return n
}

func TestChaosRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	vars := []string{"-var", "bin=/usr/bin", "-var", "consul=/bin/true", "-var", "envoy=/bin/true"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a seed that is none": {[]string{"-chaos", "x"}, "want a number from 0 to 2^64-1, or random"},
		"too long":            {[]string{"-chaos", "1", "-for", "2h"}, "-for: 2h0m0s: want 1s to 1h0m0s"},
		"no runs":             {[]string{"-chaos", "1", "-runs", "0"}, "want -runs of 1 or more"},
		"both orders":         {[]string{"-chaos", "1", "-stop-order", "both"}, "-chaos and -stop-order both are mutually exclusive"},
		"two seeds":           {[]string{"-chaos", "1", "-seed", "2"}, "-chaos and -seed are mutually exclusive"},
		"no seed":             {[]string{"-runs", "3"}, "-for, -runs and -shrink require -chaos"},
		"two scenarios":       {[]string{"-chaos", "1", example("chaos")}, "-chaos takes one scenario"},
	} {
		got := call(t, append(append(append([]string{"run"}, vars...), c.args...), example("chaos"))...)
		if got.code != 1 || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%s: exit %d, %q; want %q", name, got.code, got.stderr, c.want)
		}
	}
}

// What the help shows can be run.
func TestHelpShowsAValidChaosScenario(t *testing.T) {
	t.Parallel()
	shown := 0
	for line := range strings.Lines(call(t, "run", "-help").stdout) {
		if !strings.HasPrefix(strings.TrimSpace(line), "$ localecs run -chaos ") {
			continue
		}
		shown++
		words := strings.Fields(line)
		f, err := file.Load(example(filepath.Base(words[len(words)-1])))
		if err == nil {
			_, err = scenario.NewChaosSetup(f)
		}
		if err != nil {
			t.Errorf("%s: %v", strings.TrimSpace(line), err)
		}
	}
	if shown == 0 {
		t.Error("no example")
	}
}

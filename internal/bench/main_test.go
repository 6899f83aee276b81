package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestMain lets the wrapper of a measurement start this binary as its child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == envoyRole {
		os.Exit(playEnvoy(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func TestWrongCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown figure": {[]string{"-only", "size,speed"}, `-only "speed": want some of size, start`},
		"argument":       {[]string{"size"}, `unexpected argument "size"`},
		"negative runs":  {[]string{"-n", "-1"}, "-n -1: want at least 1"},
		"unknown flag":   {[]string{"-fast"}, "-fast"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), c.args, &stdout, &stderr); code != exitUsage || stdout.Len() > 0 {
			t.Errorf("%s: exit %d, stdout %q; want %d and none", name, code, stdout.String(), exitUsage)
		}
		if got := stderr.String(); !strings.Contains(got, c.want) {
			t.Errorf("%s: stderr %q, want %q", name, got, c.want)
		}
	}
}

func TestHelpNamesEveryFigure(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"-h", "--help"} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{arg}, &stdout, &stderr); code != exitOK || stderr.Len() > 0 {
			t.Errorf("%s: exit %d, %q", arg, code, stderr.String())
		}
		for _, f := range figures() {
			if !strings.Contains(stdout.String(), f.name) || !strings.Contains(stdout.String(), f.about) {
				t.Errorf("%s does not print %s", arg, f.name)
			}
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	all := []figure{{name: "a"}, {name: "b"}, {name: "c"}}
	for only, want := range map[string]string{"": "a b c", "b": "b", "c,a": "c a"} {
		got, err := choose(all, only)
		if err != nil || strings.Join(names(got), " ") != want {
			t.Errorf("%q: %v, %v, want %s", only, names(got), err, want)
		}
	}
}

// The bench itself, once: figures with Consul, AWS and the entry point, with
// programs that it built.
func TestFiguresAreMeasured(t *testing.T) {
	testkit.RequireBinary(t, "consul")
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-only", "start,stop", "-n", "1", "-json"}, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	var rows []struct {
		Figure string
		Ours   struct {
			Runs   int
			Median float64
		}
		References []struct{ Ratio float64 }
	}
	if err := json.Unmarshal(stdout.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"mesh-init, no login: own time", "mesh-init, no login: start to exit", "mesh-init, no login: Consul requests",
		"mesh-init, login: own time", "mesh-init, login: start to exit", "mesh-init, login: Consul requests",
		"application stopped to Envoy's TERM",
	}
	requests := map[string]float64{want[2]: 4, want[5]: 6}
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d: %s", len(rows), len(want), stdout.String())
	}
	for i, r := range rows {
		if r.Figure != want[i] {
			t.Errorf("row %d is %q, want %q", i, r.Figure, want[i])
		}
		if r.Ours.Runs != 1 || r.Ours.Median <= 0 {
			t.Errorf("row %d is %+v, want one run", i, r)
		}
		if n := requests[r.Figure]; n > 0 && r.Ours.Median != n {
			t.Errorf("%s: %v, want %v", r.Figure, r.Ours.Median, n)
		}
		for _, ref := range r.References {
			if ref.Ratio <= 0 {
				t.Errorf("%s: ratio %v", r.Figure, ref.Ratio)
			}
		}
	}
	if got := strings.Count(stderr.String(), "took"); got != 2 {
		t.Errorf("progress has %d figures, want 2: %s", got, stderr.String())
	}
}

func TestPlayerReportsTERM(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := testkit.StartProcess(t, testkit.ProcessOptions{}, self, envoyRole, "10ms", "--config-path", "x")
	p.Expect("ready")
	p.Signal(syscall.SIGTERM)
	p.Expect("term")
	if code := p.Wait(); code != exitOK {
		t.Errorf("exit %d", code)
	}
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	s := &fixture{harness: &harness{dir: t.TempDir(), progress: t.Output()}, ctx: t.Context()}
	t.Cleanup(s.close)
	return s
}

func TestUntilHasAnEnd(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	n := 0
	if _, err := s.until("third time", time.Millisecond, time.Minute, func() bool { n++; return n == 3 }); err != nil ||
		n != 3 {
		t.Errorf("asked %d times, %v; want 3", n, err)
	}
	_, err := s.until("rain", time.Millisecond, 5*time.Millisecond, func() bool { return false })
	if !says(err, "did not happen in 5ms: rain") {
		t.Errorf("error %v", err)
	}
}

func TestFailedProgramReportsItsReason(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	if _, err := s.time(nil, "/bin/sh", "-c", "echo because >&2; exit 3"); !says(err,
		"/bin/sh ended with code 3: because") {
		t.Errorf("error %v", err)
	}
	c, err := s.start(nil, "/bin/sh", "-c", "echo one; echo two")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.expect("three"); !says(err, `ended without "three"`) {
		t.Errorf("error %v", err)
	}
}

func TestStageEndsWhatItStarted(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	c, err := s.start(nil, "/bin/sh", "-c", "echo up; exec sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.expect("up"); err != nil {
		t.Fatal(err)
	}
	s.close()
	select {
	case <-c.ended:
	default:
		t.Error("program still runs")
	}
}

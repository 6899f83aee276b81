package command

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

var (
	moments = flag.Int("moments", 0, "how many moments of each kind the leak tests take; 0 is 5, or 1 with -short")
	seed    = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the leak tests' moments")
)

// What a whole run of the leaks scenario has: lines before the report, and processes when all containers are up.
const (
	allLines     = 27
	allProcesses = 16
)

// leaks returns the command line of a run of the scenario whose containers leave behind what they can.
func leaks(t *testing.T, flags ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"run", "-dir", stateDir, "-var", "kid=" + self}, flags...)
	return append(args, filepath.Join(testkit.Root(), "localecs", "command", "testdata", "leaks"))
}

// changed returns the command line of leaks on a copy of the scenario with another text.
func changed(t *testing.T, change func(text string) string, flags ...string) []string {
	t.Helper()
	args, dir := leaks(t, flags...), testkit.PublicDir(t)
	for _, name := range []string{"scenario.yaml", "many.json", "shared.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", "leaks", name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "scenario.yaml" {
			text = []byte(change(string(text)))
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args[len(args)-1] = dir
	return args
}

// held returns the command line of leaks for what happens at a moment: the run goes on until then, however late that
// is. While processes are counted all of them stay; lines come to the last.
func held(t *testing.T, o order) []string {
	t.Helper()
	return changed(t, o.hold)
}

// killed returns the command line of leaks for a process that is killed at a moment. Before there is more than a line
// it may not be there yet: then the run goes on to its end.
func killed(t *testing.T, o order) []string {
	t.Helper()
	if o.Lines > 1 {
		return held(t, o)
	}
	return leaks(t)
}

func (o order) hold(text string) string {
	if o.Processes > 0 {
		return strings.Replace(text, "{requests: 30, within: 20s}", "{requests: 1000000, within: 600s}", 1)
	}
	return text + "  - await: {service: many, passing: 1, within: 600s}\n"
}

// whole returns the command line of leaks with more time: KILL comes after 15 s and not after 3 s, and others find it
// running.
func whole(t *testing.T) []string {
	t.Helper()
	return changed(t, strings.NewReplacer("timeScale: 10", "timeScale: 2", "requests: 30", "requests: 150").Replace)
}

// pick chooses moments: for both kinds, spread over the whole run, one at random out of each equal part.
func pick(t *testing.T, salt string) []order {
	t.Helper()
	n := *moments
	switch {
	case n == 0 && testing.Short():
		n = 1
	case n == 0:
		n = 5
	}
	t.Logf("-seed=%d -moments=%d", *seed, n)
	random := rand.New(rand.NewPCG(*seed, uint64(len(salt))))
	var orders []order
	for i := range n {
		part := func(all int) int { return 1 + (i*all+random.IntN(all))/n }
		orders = append(orders, order{Lines: part(allLines)}, order{Processes: part(allProcesses)})
	}
	return orders
}

func (o order) String() string {
	if o.Lines > 0 {
		return fmt.Sprintf("%s after line %d", o.Do, o.Lines)
	}
	return fmt.Sprintf("%s at process %d", o.Do, o.Processes)
}

// clean fails the test when something was left of a run that only a reader of logs may want.
func clean(t *testing.T, what any, a answer) {
	t.Helper()
	if diff := cmp.Diff(a.Before, a.After); diff != "" {
		t.Errorf("%v: left behind (-before +after):\n%s\n%s", what, diff, a.story())
	}
	if a.Late >= testkit.Patience {
		t.Errorf("%v: had to be killed\n%s", what, a.story())
	}
}

func (e ending) story() string {
	return fmt.Sprintf("exit %d\n%s\n%s", e.Code, strings.Join(e.Lines, "\n"), e.Stderr)
}

func TestRunLeaksNothing(t *testing.T) {
	t.Parallel()
	w := newMachine(t)
	// What is in use on the host does not matter to tasks with networks of their own.
	a := w.run(order{Args: whole(t), On: "taken :53 :80 :8080 :8500"})
	clean(t, "whole run", a)
	if len(a.Kept) > 0 {
		t.Errorf("kept %q", a.Kept)
	}
	// The deaf container is the only one that does not go by itself.
	if want := "leaks: FAILED: many: container deaf had to be killed"; a.Code != 2 || a.Lines[len(a.Lines)-1] != want {
		t.Errorf("want %s\n%s", want, a.story())
	}
	for _, container := range []string{"many/greedy", "shared/greedy"} {
		log, err := os.ReadFile(filepath.Join(w.dir, stateDir, "leaks", "logs", container+".log"))
		if err != nil || string(log) != "<nil>\n" {
			t.Errorf("%s could not take its share: %q, %v", container, log, err)
		}
	}
}

func TestSignalsLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"SIGINT", "SIGINT group", "SIGTERM", "SIGHUP group"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newMachine(t)
			for _, o := range pick(t, what) {
				o.Do, o.Args = what, held(t, o)
				a := w.run(o)
				clean(t, o, a)
				if len(a.Kept) > 0 {
					t.Errorf("%v: kept %q", o, a.Kept)
				}
				// Before the first line a signal may come before it is asked for.
				if o.Lines > 0 && a.Done && (a.Code != 3 || !strings.Contains(a.Stderr, "localecs run: stopped by signal ")) {
					t.Errorf("%v: want exit 3 and its reason\n%s", o, a.story())
				}
			}
		})
	}
}

func TestClosedOutputLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newMachine(t)
	for _, o := range pick(t, "close") {
		o.Do, o.Args = "close", held(t, o)
		a := w.run(o)
		clean(t, o, a)
		if len(a.Kept) > 0 || a.Code != 3 || !strings.HasSuffix(a.Stderr, "localecs run: standard output cannot be written: write /dev/stdout: broken pipe\n") {
			t.Errorf("%v: kept %q; want exit 3 and its reason\n%s", o, a.Kept, a.story())
		}
	}
}

// The next run on the same directory works and removes what the kernel could not.
func TestKill9LeavesNothingAndTheNextRunCleansUp(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"SIGKILL", "SIGKILL group"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newMachine(t)
			for _, o := range pick(t, what) {
				o.Do, o.Args = what, held(t, o)
				a := w.run(o)
				clean(t, o, a)
				next := order{Args: held(t, order{Lines: 1}), Lines: 1, Do: "SIGTERM"}
				b := w.run(next)
				clean(t, fmt.Sprint("next run after ", o), b)
				if len(b.Kept) > 0 || b.Code != 3 || !strings.Contains(b.Stderr, "stopped by signal") {
					t.Errorf("next run after %v: kept %q\n%s", o, b.Kept, b.story())
				}
			}
		})
	}
}

// What containers depend on may be killed alone, by the user or by the kernel when
// memory is short. localecs says so and takes the rest away.
func TestKilledHelperEndsTheRun(t *testing.T) {
	t.Parallel()
	for word, says := range map[string]string{
		"anchor":  "(localecs-container-init anchor), which all containers depend on, exited unexpectedly",
		"spawner": "(localecs-container-init spawner), which all containers depend on, exited unexpectedly",
		"consul":  "onsul server", // wait for consul server, or the Consul server has ended
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			w := newMachine(t)
			for _, o := range pick(t, word) {
				o.Do, o.Args = "kill "+word, killed(t, o)
				a := w.run(o)
				clean(t, o, a)
				if len(a.Kept) > 0 {
					t.Errorf("%v: kept %q", o, a.Kept)
				}
				if o.Lines > 1 && a.Done && (a.Code != 3 || !strings.Contains(a.Stderr, says)) {
					t.Errorf("%v: want exit 3 and its reason\n%s", o, a.story())
				}
			}
		})
	}
}

// On the host's network tasks have no namespace for their links, and no links.
func TestRunOnTheHostsNetworkLeavesNothing(t *testing.T) {
	t.Parallel()
	onHost := func(o order) []string {
		return changed(t, func(text string) string {
			return o.hold(strings.Replace(text, "\ntasks:", "\nsubnet: 127.42.0.0/24\ntasks:", 1))
		}, "-network", "host")
	}
	w := newMachine(t)
	for _, o := range pick(t, "host") {
		for _, o.Do = range []string{"SIGKILL", "SIGINT group"} {
			o.Args = onHost(o)
			a := w.run(o)
			clean(t, o, a)
			if !a.Done || o.Lines > 0 && o.Do != "SIGKILL" && a.Code != 3 {
				t.Errorf("%v\n%s", o, a.story())
			}
		}
		if a := w.run(order{Args: onHost(order{Lines: 1}), Lines: 1, Do: "SIGTERM"}); a.Code != 3 || len(a.Kept) > 0 {
			t.Errorf("next run after %v: kept %q\n%s", o, a.Kept, a.story())
		}
	}
}

func TestSecondRunOnTheSameDirectory(t *testing.T) {
	t.Parallel()
	w := newMachine(t)
	a := w.run(order{Args: whole(t), Lines: allLines / 2, Next: leaks(t)})
	clean(t, "two runs", a)
	want := "localecs run: -dir: another localecs is using " + filepath.Join(w.dir, stateDir, "leaks") + ": wait until it has ended, or name another directory\n"
	if a.Next == nil || a.Next.Code != 1 || a.Next.Stderr != want || len(a.Next.Lines) > 0 {
		t.Errorf("the second: want %s\n%+v", want, a.Next)
	}
	if last := a.Lines[len(a.Lines)-1]; !strings.HasSuffix(last, "container deaf had to be killed") {
		t.Errorf("the first was disturbed\n%s", a.story())
	}
	// The first is dying, and its containers are still writing.
	for _, o := range pick(t, "second") {
		o.Do, o.Args, o.Next = "SIGKILL", held(t, o), held(t, order{Lines: 1})
		a := w.run(o)
		clean(t, o, a)
		if len(a.Kept) > 0 || a.Done && (a.Next.Code != 3 || len(a.Next.Lines) == 0) {
			t.Errorf("%v: kept %q\n%s\n%+v", o, a.Kept, a.story(), a.Next)
		}
	}
}

// Without root there is one more process, in a user namespace. The machine forbids nothing else.
func TestRootlessRunLeavesNothing(t *testing.T) {
	t.Parallel()
	for what, says := range map[string]string{
		"SIGINT group":           "localecs run: stopped by signal interrupt",
		"SIGTERM":                "localecs run: stopped by signal terminated",
		"SIGKILL":                "",
		"kill localecs-rootless": "localecs run: the process in the user namespace was terminated by signal killed; all its resources were released",
		"kill anchor":            "(localecs-container-init anchor), which all containers depend on, exited unexpectedly",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newMachine(t)
			for _, o := range pick(t, what) {
				o.On, o.Do, o.Args = "unprivileged", what, held(t, o)
				sure := o.Lines > 0
				if strings.HasPrefix(what, "kill ") {
					o.Args, sure = killed(t, o), o.Lines > 1
				}
				a := w.run(o)
				clean(t, o, a)
				if sure && a.Done && (a.Code == 0 || a.Code > 3 || !strings.Contains(a.Stderr, says)) {
					t.Errorf("%v: want %q\n%s", o, says, a.story())
				}
				b := w.run(order{On: "unprivileged", Args: held(t, order{Lines: 1}), Lines: 1, Do: "SIGTERM"})
				clean(t, fmt.Sprint("next run after ", o), b)
				if len(b.Kept) > 0 || b.Code != 3 {
					t.Errorf("next run after %v: kept %q\n%s", o, b.Kept, b.story())
				}
			}
		})
	}
}

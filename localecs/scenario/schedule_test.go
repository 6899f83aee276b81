package scenario_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// diary writes down what happens, by the second since it was made.
type diary struct {
	began time.Time
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf("%v ", time.Since(d.began).Seconds())+fmt.Sprintf(format, args...))
}

// schedule returns one whose faults are recorded: kills are momentary, those of "gone" fail, and those
// of "sticky" do not end.
func schedule(d *diary) *scenario.Schedule {
	d.began = time.Now()
	return scenario.NewSchedule(func(f chaos.Fault) (func() error, error) {
		switch {
		case f.Kill != nil && f.Kill.Task == "gone":
			return nil, errors.New("it has ended")
		case f.Kill != nil:
			d.note("kill %s", f.Kill.Task)
			return nil, nil
		}
		d.note("%s begins", f)
		return func() error {
			d.note("%s ends", f)
			if f.Endpoint.Task == "sticky" {
				return errors.New("stuck")
			}
			return nil
		}, nil
	}, func(f chaos.Fault, over bool, err error) { d.note("reported: %s, over: %v, %v", f, over, err) })
}

func kill(at time.Duration, task string) chaos.Fault {
	return chaos.Fault{At: at, Kill: &chaos.Kill{Task: task, Container: "c"}}
}

func hang(at, last time.Duration, task string) chaos.Fault {
	return chaos.Fault{At: at, For: last, Endpoint: &chaos.Endpoint{Name: "sts", Task: task, Hang: true}}
}

func TestFaultsBeginAndEndAtTheirTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		s := schedule(&d)
		s.Add([]chaos.Fault{kill(3*time.Second, "a"), hang(time.Second, 4*time.Second, "sticky"),
			kill(2*time.Second, "gone"), kill(3*time.Second, "b")})
		<-time.After(1600 * time.Millisecond)
		s.Add([]chaos.Fault{kill(400*time.Millisecond+1, "c")}) // counts from here
		for open := 5; open > 0; {
			if n := s.Open(); n != open {
				d.note("%d open", n)
				open = n
			}
			<-time.After(250 * time.Millisecond)
		}
		s.End()
		s.End() // does nothing
		want := []string{
			"1 sts of sticky hangs begins", "1 reported: sts of sticky hangs, over: false, <nil>",
			"2 reported: kill -9 gone/c, over: false, it has ended",
			"2.000000001 kill c", "2.000000001 reported: kill -9 c/c, over: false, <nil>",
			"2.1 3 open",
			"3 kill a", "3 reported: kill -9 a/c, over: false, <nil>", "3 kill b",
			"3 reported: kill -9 b/c, over: false, <nil>",
			"3.1 1 open",
			"5 sts of sticky hangs ends", "5 reported: sts of sticky hangs, over: true, stuck",
			"5.1 0 open",
		}
		if diff := cmp.Diff(want, d.lines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestAllEndWithTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		s := schedule(&d)
		s.Add([]chaos.Fault{hang(0, 0, "rest"), hang(time.Second, time.Hour, "long"), kill(time.Minute, "late")})
		<-time.After(2500 * time.Millisecond)
		// What lasts for the rest of the run is not waited for.
		now, made := s.Now()
		testkit.Equal(t, "made", made, 2)
		if len(now) != 2 {
			t.Fatalf("%d made, now %v; want rest and long", made, now)
		}
		testkit.Equal(t, "now[0].Endpoint.Task", now[0].Endpoint.Task, "rest")
		testkit.Equal(t, "now[1].Endpoint.Task", now[1].Endpoint.Task, "long")
		if n := s.Open(); n != 2 {
			t.Errorf("%d open, want long and late", n)
		}
		never := s.End()
		if now, made := s.Now(); made != 2 || len(now) != 0 {
			t.Errorf("at the end %d made, now %v", made, now)
		}
		ended := map[string]bool{}
		for _, line := range d.lines {
			ended[line] = true
		}
		for _, want := range []string{
			"2.5 reported: sts of rest hangs, over: true, <nil>",
			"2.5 reported: sts of long hangs, over: true, <nil>",
		} {
			if !ended[want] {
				t.Errorf("no %q in %q", want, d.lines)
			}
		}
		if diff := cmp.Diff([]chaos.Fault{kill(time.Minute, "late")}, never); diff != "" || ended["2.5 kill late"] {
			t.Errorf("never began (-want +got):\n%s\n%q", diff, d.lines)
		}
	})
}

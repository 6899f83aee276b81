package scenario

import (
	"bytes"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// stillWaiting is a scenario in its second step.
func stillWaiting(started time.Time) State {
	return State{Scenario: "hello", Begun: started, Step: Step{
		Number: 2, Count: 3, Text: "await 2 passing instances of api", SoFar: "1 of 2", Begun: started, Within: 90 * time.Second,
	}}
}

// pass lets the time of a bubble pass, and what happens in it.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestLongSilencesAreBroken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		out := Lines(&b, &b)
		started := time.Now()
		var step atomic.Value
		step.Store(stillWaiting(started).Step)
		end := out.Follow(func() State {
			return State{Scenario: "hello", Begun: started, Step: step.Load().(Step)}
		})
		event := func() {
			out.Event(Event{Seconds: Seconds(time.Since(started)), Kind: view.KindStatus, Task: "web", Text: "RUNNING"})
		}
		pass(21 * time.Second) // 10 and 20 s are reported
		event()
		pass(9 * time.Second)
		event() // nor is there a silence yet
		step.Store(Step{Number: 3, Count: 3, Text: "stop api-1", Begun: time.Now()})
		pass(9 * time.Second)
		step.Store(Step{Number: 3, Count: 3, Text: "stop api-1", Begun: time.Now()}) // it is younger than the silence
		pass(11 * time.Second)
		step.Store(Step{Text: "start the Consul server", Begun: started})
		pass(10 * time.Second)
		step.Store(Step{})
		pass(time.Minute)
		end()
		want := "  10.00s  step       2 of 3                 still waiting: 2 passing instances of api (1 of 2), 10 s of 90 s\n" +
			"  20.00s  step       2 of 3                 still waiting: 2 passing instances of api (1 of 2), 20 s of 90 s\n" +
			"  21.00s  web                               RUNNING\n" +
			"  30.00s  web                               RUNNING\n" +
			"  49.00s  step       3 of 3                 still busy: stop api-1, 10 s\n" +
			"  59.00s                                    still busy: start the Consul server, 59 s\n"
		if b.String() != want {
			t.Errorf("got\n%s\nwant\n%s", b.String(), want)
		}
	})
}

func TestSilenceAsAnObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		out := Objects(&b, &b)
		started := time.Now()
		end := out.Follow(func() State { return stillWaiting(started) })
		pass(11 * time.Second)
		end()
		var e Event
		if err := json.Unmarshal(b.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		want := Event{
			Time: e.Time, Seconds: 10, Scenario: "hello", Kind: KindWaiting, Step: 2, Steps: 3, TookSeconds: 10, WithinSeconds: 90,
			SoFar: "1 of 2", Text: "still waiting: 2 passing instances of api (1 of 2), 10 s of 90 s",
		}
		if e != want || !e.Time.Equal(started.Add(10*time.Second)) {
			t.Errorf("got %+v, want %+v", e, want)
		}
	})
}

func TestFollowEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var b bytes.Buffer
		for _, follow := range []func(func() State) func(){Lines(&b, &b).Follow, Objects(&b, &b).Follow} {
			end := follow(func() State { return State{} })
			end()
			end()
		}
		if took := time.Since(began); took != 0 || b.Len() > 0 {
			t.Errorf("took %s and wrote %q", took, b.String())
		}
	})
}

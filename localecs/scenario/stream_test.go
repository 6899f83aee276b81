package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// silent returns a run in its second step, which breaks its silences until end.
func silent(out func(Event)) (r *progress, end func()) {
	now := time.Now()
	r = &progress{
		scenario: "hello", record: NewRecording(), out: out, started: now,
		now: currentStep{
			Number: 2, Count: 3, Text: "await 2 passing instances of api", SoFar: "1 of 2", Started: now,
			Within: 90 * time.Second,
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var speaking sync.WaitGroup
	speaking.Go(func() { r.breakSilences(ctx, nil) })
	return r, func() {
		cancel()
		speaking.Wait()
	}
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
		r, end := silent(Lines(&b, &b))
		event := func() { r.emit(Event{Kind: view.KindStatus, Task: "web", Text: "RUNNING"}) }
		step := func(s currentStep) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.now = s
		}
		pass(21 * time.Second) // 10 and 20 s are reported
		event()
		pass(9 * time.Second)
		event() // nor is there a silence yet
		step(currentStep{Number: 3, Count: 3, Text: "stop api-1", Started: time.Now()})
		pass(9 * time.Second)
		// it is younger than the silence
		step(currentStep{Number: 3, Count: 3, Text: "stop api-1", Started: time.Now()})
		pass(11 * time.Second)
		step(currentStep{Text: "start the Consul server", Started: r.started})
		pass(10 * time.Second)
		step(currentStep{})
		pass(time.Minute)
		end()
		want := "  10.00s  step       2 of 3                 still waiting: 2 passing instances of api (1 of 2), 10 " +
			"s of 90 s\n" +
			"  20.00s  step       2 of 3                 still waiting: 2 passing instances of api (1 of 2), 20 s of " +
			"90 s\n" +
			"  21.00s  web                               RUNNING\n" +
			"  30.00s  web                               RUNNING\n" +
			"  49.00s  step       3 of 3                 still busy: stop api-1, 10 s\n" +
			"  59.00s                                    still busy: start the Consul server, 59 s\n"
		if b.String() != want {
			t.Errorf("got\n%s\nwant\n%s", b.String(), want)
		}
	})
}

func TestSilenceIsAnEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		r, end := silent(Objects(&b, &b))
		pass(11 * time.Second)
		end()
		var e Event
		if err := json.Unmarshal(b.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		want := Event{
			Time: e.Time, Seconds: 10, Scenario: "hello", Kind: KindWaiting, Step: 2, Steps: 3, TookSeconds: 10,
			WithinSeconds: 90,
			SoFar:         "1 of 2", Text: "still waiting: 2 passing instances of api (1 of 2), 10 s of 90 s",
		}
		if e != want || !e.Time.Equal(r.started.Add(10*time.Second)) {
			t.Errorf("got %+v, want %+v", e, want)
		}
	})
}

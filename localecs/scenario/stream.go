package scenario

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// silence is how long nothing may be written while a step goes on: a log should show
// that the run is alive, and what it waits for.
const silence = 10 * time.Second

// Stream writes every event as it comes.
type Stream struct {
	form           func(Event) []byte
	events, output io.Writer

	mu   sync.Mutex
	last time.Time // of the latest line
}

// Lines returns a stream of one line per event, for users. The writer output is for
// lines of containers, which wait while it blocks; events is for all others and must
// not block. Both must be safe for concurrent use.
func Lines(events, output io.Writer) *Stream {
	return &Stream{form: Event.line, events: events, output: output}
}

// Objects is Lines with one JSON object per event, for programs.
func Objects(events, output io.Writer) *Stream {
	return &Stream{form: Event.object, events: events, output: output}
}

// DroppedLine returns the line of a KindDropped event.
func DroppedLine(n int) []byte { return dropped(n).line() }

// DroppedObject returns the object of a KindDropped event.
func DroppedObject(n int) []byte { return dropped(n).object() }

func dropped(n int) Event {
	return Event{Time: time.Now(), Kind: KindDropped, Text: fmt.Sprintf("%d events were dropped, since the output was not read in time", n)}
}

// Event writes the event. Several goroutines may call it.
func (s *Stream) Event(e Event) {
	text := s.form(e)
	if len(text) == 0 {
		return
	}
	s.mu.Lock()
	s.last = time.Now()
	s.mu.Unlock()
	out := s.events
	if e.Kind == KindOutput {
		out = s.output
	}
	_, _ = out.Write(text) // the owner of the writer handles its errors
}

// Follow breaks long silences with the state that look returns, until end is called.
func (s *Stream) Follow(look func() State) (end func()) {
	return background(func(stop <-chan struct{}) {
		tick := time.NewTicker(silence / 100)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				s.speak(look, now)
			case <-stop:
				return
			}
		}
	})
}

// speak writes how far the step is if both it and the silence are long.
func (s *Stream) speak(look func() State, now time.Time) {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if now.Sub(last) < silence {
		return
	}
	state := look()
	step := state.Step
	if step.Text == "" || now.Sub(step.Begun) < silence {
		return
	}
	s.Event(Event{
		Time: now, Seconds: Seconds(now.Sub(state.Begun)), Scenario: state.Scenario, Kind: KindWaiting,
		Step: step.Number, Steps: step.Count, TookSeconds: Seconds(now.Sub(step.Begun)),
		WithinSeconds: Seconds(step.Within), SoFar: step.SoFar, Text: step.still(now),
	})
}

// background runs work until end is called, which waits for it.
func background(work func(stop <-chan struct{})) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		work(stop)
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-ended
	})
}

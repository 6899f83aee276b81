package progress

import (
	"io"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/screen"
)

// silence is how long nothing may be written while a step goes on: whoever reads
// a log should see that the run is alive, and what it waits for.
const silence = 10 * time.Second

// Stream writes every event as it comes.
type Stream struct {
	form func(Event) []byte

	mu   sync.Mutex
	out  io.Writer
	last time.Time // of the latest line
}

// Lines writes a line an event, for people.
func Lines(out io.Writer) *Stream { return &Stream{form: Event.line, out: out} }

// Objects writes a JSON object an event, for machines.
func Objects(out io.Writer) *Stream { return &Stream{form: Event.object, out: out} }

// Event writes the event. Several goroutines may call it.
func (s *Stream) Event(e Event) {
	text := s.form(e)
	if len(text) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	_, _ = s.out.Write(text) // the writer knows, and its owner decides
}

// Follow breaks long silences with what look tells, until end is called.
func (s *Stream) Follow(look func() screen.State) (end func()) {
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
func (s *Stream) speak(look func() screen.State, now time.Time) {
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
		Time: now, Seconds: Seconds(now.Sub(state.Begun)), Scenario: state.Scenario, Kind: Waiting,
		Step: step.Number, Steps: step.Count, TookSeconds: Seconds(now.Sub(step.Begun)),
		WithinSeconds: Seconds(step.Within), SoFar: step.SoFar, Text: step.Still(now),
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

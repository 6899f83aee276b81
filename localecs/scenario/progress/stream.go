package progress

import (
	"io"
	"sync"
)

// Stream writes every event as it comes.
type Stream struct {
	form func(Event) []byte

	mu  sync.Mutex
	out io.Writer
}

// Lines writes a line an event, for people.
func Lines(out io.Writer) *Stream { return &Stream{form: Event.line, out: out} }

// Objects writes a JSON object an event, for machines.
func Objects(out io.Writer) *Stream { return &Stream{form: Event.object, out: out} }

// Event writes the event. Several goroutines may call it.
func (s *Stream) Event(e Event) {
	text := s.form(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(text) // the writer knows, and its owner decides
}

package scenario

import (
	"fmt"
	"io"
	"time"
)

// Lines returns an Options.Progress that writes one line per event, for users. The writer output
// is for lines of containers, which wait while it blocks; events is for all others and must not
// block. Both must be safe for concurrent use.
func Lines(events, output io.Writer) func(Event) { return writer(Event.line, events, output) }

// Objects does the same as Lines with one JSON object per event, for programs.
func Objects(events, output io.Writer) func(Event) { return writer(Event.object, events, output) }

func writer(form func(Event) []byte, events, output io.Writer) func(Event) {
	return func(e Event) {
		out := events
		if e.Kind == KindOutput {
			out = output
		}
		if text := form(e); len(text) > 0 {
			_, _ = out.Write(text) // the owner of the writer handles its errors
		}
	}
}

// DroppedLine returns the line of a KindDropped event.
func DroppedLine(n int) []byte { return dropped(n).line() }

// DroppedObject returns the object of a KindDropped event.
func DroppedObject(n int) []byte { return dropped(n).object() }

func dropped(n int) Event {
	return Event{
		Time: time.Now(), Kind: KindDropped,
		Text: fmt.Sprintf("%d events were dropped, since the output was not read in time", n),
	}
}

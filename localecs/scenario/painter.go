package scenario

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// Escape sequences. All terminals since the VT100 support them.
const (
	save       = "\x1b7"    // remember where the cursor is
	restore    = "\x1b8"    // go there
	eraseLine  = "\x1b[K"   // from the cursor on
	eraseRest  = "\x1b[J"   // from the cursor to the end of the screen
	up         = "\x1b[%dA" // so many rows
	noWrap     = "\x1b[?7l" // cut rows at the last column
	wrap       = "\x1b[?7h"
	plainStyle = "\x1b[0m"
)

// painter holds what the terminal shows. Between frames the cursor stands where
// the block begins: there a terminal keeps it when it is resized, whatever it
// does with the rows below, and from there everything below can be erased. The
// cursor is never hidden, so there is nothing to repair after kill -9.
type painter struct {
	frame []string
	size  view.Size
}

// paint returns what makes the terminal show lines, which scroll, and then the
// frame. An empty frame leaves nothing of the last one.
func (p *painter) paint(lines []byte, frame []string, size view.Size) []byte {
	if len(lines) == 0 && size == p.size && slices.Equal(frame, p.frame) {
		return nil
	}
	var b bytes.Buffer
	if len(p.frame) > 0 {
		// Ctrl-C and Ctrl-Z discard pending output, which may be the end of the
		// last frame.
		b.WriteString(plainStyle + wrap)
		if size == p.size {
			// The echo of typed text has moved the cursor.
			b.WriteString(restore)
		} else {
			// Resizing changes the saved position; the cursor's column is 0.
			b.WriteString("\r")
		}
	}
	if len(lines) > 0 {
		b.WriteString(eraseRest)
		b.Write(lines)
	}
	if len(frame) > 0 {
		// A terminal with other character widths, or that has become narrower,
		// must not wrap a row.
		b.WriteString(noWrap + strings.Join(frame, eraseLine+"\n") + wrap)
	}
	if len(frame) > 0 || len(p.frame) > 0 {
		b.WriteString(eraseRest)
	}
	if n := len(frame) - 1; n > 0 {
		fmt.Fprintf(&b, up, n)
	}
	if len(frame) > 0 {
		b.WriteString("\r" + save)
	}
	p.frame, p.size = frame, size
	return b.Bytes()
}

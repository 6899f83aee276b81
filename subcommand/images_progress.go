package subcommand

import (
	"fmt"
	"io"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// progress shows which images have been read: on a terminal one line that changes, elsewhere
// a line for each.
type progress struct {
	terminal bool
	out      io.Writer
	read     int
}

// clearLine moves a terminal's cursor to the start of the line, and clears it.
const clearLine = "\r\x1b[K"

func (p *progress) report(reference string, image taskdef.LockedImage) {
	p.read++
	text := taskdef.OneLine(fmt.Sprintf("read %s: %s", reference, strings.Join(image.PlatformNames(), ", ")))
	if p.terminal {
		fmt.Fprintf(p.out, "%s%d: %s", clearLine, p.read, text)
		return
	}
	fmt.Fprintln(p.out, text)
}

// end removes the line that changes.
func (p *progress) end() {
	if p.terminal && p.read > 0 {
		fmt.Fprint(p.out, clearLine)
	}
}

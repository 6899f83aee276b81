package runtime

import (
	"bufio"
	"errors"
	"io"
)

const maxLine = 16 << 10

// CopyLines writes from's lines, one Write each, until from ends. The last one
// gets a newline if it lacks one. A writer that fails is not asked again, but
// from is read on: a full pipe would stop the container.
func CopyLines(to io.Writer, from io.Reader) {
	lines := bufio.NewReaderSize(from, maxLine)
	broken := false
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 && !broken {
			if err != nil {
				line = append(append([]byte(nil), line...), '\n')
			}
			_, writeErr := to.Write(line)
			broken = writeErr != nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

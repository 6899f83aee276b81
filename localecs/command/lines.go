package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// Log is the log of a container.
type Log struct {
	Task, Container, Path string
}

// Printer prints logs, once.
type Printer struct {
	Out  io.Writer
	Logs []Log
	// JSON has each line in an object.
	JSON bool
	// Tail is how many lines of each log to begin with; negative is all.
	Tail int

	open []*source
}

// source is an open log, and the beginning of a line that has not ended.
type source struct {
	*os.File
	rest []byte
}

// lookPeriod is how often it is looked for more in logs.
const logPeriod = 100 * time.Millisecond

// Follow prints what there is and what comes, until over is closed.
func (p *Printer) Follow(ctx context.Context, over <-chan struct{}) error {
	defer p.close()
	tick := time.NewTicker(logPeriod)
	defer tick.Stop()
	for last := false; ; {
		if err := p.more(last); err != nil || last {
			return err
		}
		select {
		case <-tick.C:
		case <-over:
			last = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// All prints what there is.
func (p *Printer) All() error {
	defer p.close()
	return p.more(true)
}

// more prints what is new. last says that unended lines will not go on.
func (p *Printer) more(last bool) error {
	if p.open == nil {
		for _, f := range p.Logs {
			s := &source{}
			file, err := os.Open(f.Path)
			if err != nil {
				return err
			}
			s.File = file
			p.open = append(p.open, s)
			if err := s.skip(p.Tail); err != nil {
				return fmt.Errorf("read %s: %w", f.Path, err)
			}
		}
	}
	for i, s := range p.open {
		if err := p.from(i, s, last); err != nil {
			return err
		}
	}
	return nil
}

// from prints what is new in one log.
func (p *Printer) from(i int, s *source, last bool) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.Read(buf)
		s.rest = append(s.rest, buf[:n]...)
		for {
			line, rest, whole := bytes.Cut(s.rest, []byte("\n"))
			if !whole {
				break
			}
			if err := p.line(i, line); err != nil {
				return err
			}
			s.rest = rest
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", p.Logs[i].Path, err)
		}
	}
	if line := s.rest; last && len(line) > 0 {
		s.rest = nil
		return p.line(i, line)
	}
	return nil
}

// logLine is a line for machines.
type logLine struct {
	Task      string `json:"task"`
	Container string `json:"container"`
	Line      string `json:"line"`
}

func (p *Printer) line(i int, text []byte) error {
	f := p.Logs[i]
	switch {
	case p.JSON:
		return json.NewEncoder(p.Out).Encode(logLine{f.Task, f.Container, string(text)})
	case len(p.Logs) > 1:
		_, err := fmt.Fprintf(p.Out, "%-*s | %s\n", p.width(), f.Container, text)
		return err
	}
	_, err := fmt.Fprintf(p.Out, "%s\n", text)
	return err
}

// width is that of the longest name.
func (p *Printer) width() int {
	n := 0
	for _, f := range p.Logs {
		n = max(n, len(f.Container))
	}
	return n
}

func (p *Printer) close() {
	for _, s := range p.open {
		s.Close()
	}
}

// skip goes to the last n lines; all of them when n is negative.
func (s *source) skip(n int) error {
	if n < 0 {
		return nil
	}
	size, err := s.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	at, err := tailOf(s, size, n)
	if err != nil {
		return err
	}
	_, err = s.Seek(at, io.SeekStart)
	return err
}

// tailOf is where the last n lines of a text begin.
func tailOf(r io.ReaderAt, size int64, n int) (int64, error) {
	if n == 0 {
		return size, nil
	}
	const block = 32 << 10
	buf := make([]byte, block)
	for end, seen := size, 0; end > 0; {
		from := max(0, end-block)
		part := buf[:end-from]
		if _, err := r.ReadAt(part, from); err != nil && err != io.EOF {
			return 0, err
		}
		for i := len(part) - 1; i >= 0; i-- {
			if at := from + int64(i); part[i] == '\n' && at != size-1 {
				if seen++; seen == n {
					return at + 1, nil
				}
			}
		}
		end = from
	}
	return 0, nil
}

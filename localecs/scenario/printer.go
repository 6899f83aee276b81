package scenario

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// maxText is where a line for people is cut, in characters: a probe may say a
// thousand.
const maxText = 160

// printer writes progress: a line per event for people, an object per event
// for machines.
type printer struct {
	mu    sync.Mutex
	out   io.Writer
	json  bool
	start time.Time
}

func newPrinter(out io.Writer, json bool, start time.Time) *printer {
	return &printer{out: out, json: json, start: start}
}

func (p *printer) line(who, part, text string) { p.event(time.Now(), who, part, text) }

func (p *printer) event(at time.Time, who, part, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seconds := at.Sub(p.start).Seconds()
	if p.json {
		json.NewEncoder(p.out).Encode(struct {
			Time    time.Time `json:"time"`
			Seconds float64   `json:"seconds"`
			Task    string    `json:"task,omitempty"`
			Part    string    `json:"part,omitempty"`
			Text    string    `json:"text"`
		}{at, seconds, who, part, text})
		return
	}
	fmt.Fprintf(p.out, "%7.2fs  %-8s %-22s %s\n", seconds, who, part, oneLine(text))
}

// oneLine is text without line breaks, cut where it gets long.
func oneLine(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxText {
		return string(runes[:maxText]) + "…"
	}
	return string(runes)
}

// tailSize is how much of a log's end is looked at.
const tailSize = 8 << 10

// lastLine is a log's last line, or why there is none.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > tailSize {
		_, _ = f.Seek(-tailSize, io.SeekEnd) // at worst the beginning is read
	}
	end, err := io.ReadAll(io.LimitReader(f, tailSize))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(end)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return "its log is empty"
}

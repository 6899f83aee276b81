package cluster

import (
	"io"
	"os"
	"strings"
)

const tailSize = 8 << 10

// LastLine is a log's last line, or why there is none.
func LastLine(path string) string {
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

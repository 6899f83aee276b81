package cluster

import (
	"io"
	"os"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
)

// logFile is a container's output on disk. The first failed write is logged: the container continues.
type logFile struct {
	file *os.File
	// copyTo gets what is written, too; nil is allowed. It is set before the first write.
	copyTo func(line []byte)
	log    hclog.Logger
	once   sync.Once
}

// openLog makes a log, or appends to it. Its errors are written to log.
func openLog(path string, log hclog.Logger) (*logFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &logFile{file: f, log: log}, nil
}

// Write implements io.Writer.
func (f *logFile) Write(p []byte) (int, error) {
	if f.copyTo != nil {
		f.copyTo(p)
	}
	n, err := f.file.Write(p)
	if err != nil {
		f.once.Do(func() { f.log.Warn("output of a container is lost from here on", logkey.Error, err) })
	}
	return n, err
}

// Close implements io.Closer.
func (f *logFile) Close() error { return f.file.Close() }

const tailSize = 8 << 10

// LastLine returns the last line of a log, or the reason why there is none.
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

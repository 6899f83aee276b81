package localecs

import (
	"os"
	"sync"

	"github.com/meshtask/consul-ecs/internal/logkey"
)

// logFile is a container's output on disk. That it cannot be written is told
// once: the container goes on.
type logFile struct {
	*os.File
	tell func(error)
	once sync.Once
}

// Write implements io.Writer.
func (l *logFile) Write(p []byte) (int, error) {
	n, err := l.File.Write(p)
	if err != nil {
		l.once.Do(func() { l.tell(err) })
	}
	return n, err
}

// openLog makes a log whose troubles are told in the cluster's.
func (c *Cluster) openLog(path string) (*logFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &logFile{File: f, tell: func(err error) {
		c.options.Log.Warn("output of a container is lost from here on", logkey.Error, err)
	}}, nil
}

package command

import (
	"context"
	"io"
	"os"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
)

// Append opens a file, or a pipe, to which lines are appended without blocking. What
// could not be written is logged.
func Append(ctx context.Context, path string, log hclog.Logger) (lines io.Writer, closeFile func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	w := New(ctx, file, func(err error) { log.Warn("lines were not written", logkey.Path, path, logkey.Error, err) })
	lines = w.Lossy(func(dropped int) []byte {
		log.Warn("lines were dropped, since the file was not read in time", logkey.Path, path, logkey.Dropped, dropped)
		return nil
	})
	return lines, func() {
		_ = w.Flush() // has been logged
		file.Close()
	}, nil
}

// Package output ends a run whose words nobody gets: the pipe's reader has gone,
// or the disk is full.
//
// Owns: SIGPIPE. Never does: write anything of its own.
// Start reading at: Watch.
package output

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"
)

// watched is standard output.
type watched struct {
	to   io.Writer
	fail context.CancelCauseFunc
}

// Watch returns a context that ends when out cannot be written, and the
// writer to use from there on.
func Watch(ctx context.Context, out io.Writer) (context.Context, io.Writer) {
	// Without this the first write after "| head" would kill us like kill -9.
	signal.Ignore(syscall.SIGPIPE)
	ctx, fail := context.WithCancelCause(ctx)
	return ctx, &watched{to: out, fail: fail}
}

// Write implements io.Writer.
func (o *watched) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.fail(fmt.Errorf("nobody gets what this run says: %w", err))
	}
	return n, err
}

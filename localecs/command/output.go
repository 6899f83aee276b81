package command

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"
)

// output is standard output. A run whose words nobody gets is ended: the pipe's
// reader has gone, or the disk is full.
type output struct {
	to   io.Writer
	fail context.CancelCauseFunc
}

// watchOutput returns a context that ends when out cannot be written, and the
// writer to use from there on.
func watchOutput(ctx context.Context, out io.Writer) (context.Context, io.Writer) {
	// Without this the first write after "| head" would kill us like kill -9.
	signal.Ignore(syscall.SIGPIPE)
	ctx, fail := context.WithCancelCause(ctx)
	return ctx, &output{to: out, fail: fail}
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.fail(fmt.Errorf("nobody gets what this run says: %w", err))
	}
	return n, err
}

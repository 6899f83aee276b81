package command

import (
	"context"
	"fmt"

	"github.com/meshtask/consul-ecs/internal/cli"
)

// Stderr makes inv write to standard error, and log, without blocking until restore is
// called, which waits until everything has been written. When the reader has stopped
// reading, restore changes nothing: what is still written may be lost, and does not
// keep the process from ending.
func Stderr(ctx context.Context, inv *cli.Invocation, level string, json bool) (restore func(), err error) {
	stderr, log := inv.Stderr, inv.Log
	w := New(ctx, stderr, func(error) {}) // there is no place to report it
	inv.Stderr = w.Lossy(func(dropped int) []byte {
		const text = "lines were dropped, since standard error was not read in time"
		if json {
			return fmt.Appendf(nil, `{"@level":"warn","@message":"%s","dropped":%d}`+"\n", text, dropped)
		}
		return fmt.Appendf(nil, "localecs: %d %s\n", dropped, text)
	})
	restore = func() {
		if w.Flush() == nil {
			inv.Stderr, inv.Log = stderr, log
		}
	}
	if err := inv.UseLogger(level, json); err != nil {
		restore()
		return nil, err
	}
	return restore, nil
}

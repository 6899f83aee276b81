package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// Attach runs a process in the container, as Exec does, with its own streams,
// and waits for its end. It ends with the container, and is killed when ctx ends.
// The code is the process's, 128+n after signal n, or one of the session exit codes with
// an error why it did not run.
func (c *Container) Attach(ctx context.Context, s Session) (code int, err error) {
	if err := c.awaitThaw(ctx); err != nil {
		return CodeFailed, err
	}
	return c.life.Attach(ctx, s)
}

// Attach enters the container's namespaces.
func (n *native) Attach(ctx context.Context, s Session) (code int, err error) {
	if len(s.Argv) == 0 {
		return CodeFailed, errors.New("no command specified")
	}
	env := n.config.Env
	if s.Terminal && !slices.ContainsFunc(env, func(v string) bool { return len(v) > 5 && v[:5] == "TERM=" }) {
		env = append(slices.Clone(env), "TERM=xterm") // as docker does
	}
	var pid int
	done := make(chan struct{})
	host.OnThrowawayThread(func() {
		defer close(done)
		if err = n.enter(); err == nil {
			pid, err = n.execute(s.Argv, env, [3]uintptr{s.Stdin.Fd(), s.Stdout.Fd(), s.Stderr.Fd()}, s.Terminal)
		}
	})
	<-done
	goruntime.KeepAlive(s)
	if err != nil {
		return Code(err), err
	}
	if n.group != nil {
		_ = n.group.add(pid) // one that has ended already needs no limit
	}
	return Follow(ctx, pid, s, nil), nil
}

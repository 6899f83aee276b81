package runtime

import (
	"fmt"
	"os"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// pidNamespace is a pid namespace that containers share: pidMode task. Its PID 1 is
// ours, reaps orphans, and takes all of them along when it ends.
type pidNamespace struct {
	runtime *Runtime
	process          // PID 1
	keep    *os.File // PID 1 lives until this is closed
	once    sync.Once
}

// sharePIDs makes a pid namespace for several containers.
func (r *Runtime) sharePIDs() (*pidNamespace, error) {
	end, ok := r.starts.Begin()
	if !ok {
		return nil, ErrClosed
	}
	defer end()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	read, keep, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	child, err := r.spawn.clone(pidHolder, null, null, null, read)
	if err != nil {
		keep.Close()
		return nil, fmt.Errorf("make a shared pid namespace: %w", host.Shortage(err, "pid"))
	}
	p := &pidNamespace{runtime: r, process: child, keep: keep}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shared[p] = true
	return p, nil
}

// Close kills what is still inside and gives the namespace back. Containers
// must have ended: their starters wait for them.
func (p *pidNamespace) Close() error {
	p.end()
	p.runtime.mu.Lock()
	defer p.runtime.mu.Unlock()
	delete(p.runtime.shared, p)
	return nil
}

func (p *pidNamespace) end() {
	p.once.Do(func() {
		p.keep.Close()
		p.reap()
		p.pidfd.Close()
	})
}

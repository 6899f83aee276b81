package runtime

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/host"
)

const prefix = "localecs-"

// closeTimeout bounds the wait for the kernel to let a group go whose last
// process is dead. It takes milliseconds, or seconds on a busy machine.
const closeTimeout = 10 * time.Second

// root is where all groups of one simulator are.
type root struct {
	group *ControlGroup
	locks []*os.File
}

// makeRoot makes the simulator's own group and removes those whose owner is dead.
// The error is a *host.MissingError when this host or this user cannot.
func makeRoot() (*root, error) {
	const what, need, instead = "limit memory", "a control group that this user may divide", "run as root, or in a session that systemd delegates to you"
	h, err := thisHost()
	if err != nil {
		return nil, host.Explain(what, need, instead, err)
	}
	hierarchies, err := h.hierarchies()
	if err != nil {
		return nil, &host.MissingError{What: what, Need: need, Instead: instead, Err: err}
	}
	r, err := open(hierarchies)
	return r, host.Explain(what, need, instead, err)
}

func open(hierarchies []hierarchy) (*root, error) {
	r := &root{group: &ControlGroup{}}
	name := prefix + rand.Text()
	for _, p := range hierarchies {
		sweep(p.dir)
		own := hierarchy{p.kind, filepath.Join(p.dir, name)}
		lock, err := makeLocked(own.dir)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.locks = append(r.locks, lock)
		r.group.hierarchies = append(r.group.hierarchies, own)
	}
	if err := r.group.handDown(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// makeLocked makes a group and locks it. Another simulator's sweep may take it
// away in between, so it is made until it stays.
func makeLocked(dir string) (*os.File, error) {
	for {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		lock, err := os.Open(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			if _, err = os.Stat(dir); err == nil {
				return lock, nil
			}
		}
		lock.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
}

// sweep removes what simulators that were killed have left in dir. What cannot be removed is left to the next one.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	for _, d := range left {
		lock, err := os.Open(d)
		if err != nil {
			continue
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = removeTree(d)
		}
		lock.Close()
	}
}

// removeTree removes a group and the groups below it. Their files are not entries that can be removed.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeTree(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(err, unix.Rmdir(dir))
}

// task makes the group of a task, below which those of its containers are.
// memory is what they may use together, in bytes, swap included; 0 is no limit.
func (r *root) task(name string, memory uint64) (*ControlGroup, error) {
	g, err := r.group.below(name, memory)
	if err != nil {
		return nil, err
	}
	if err := g.handDown(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Close removes the simulator's group and what is left below it.
func (r *root) Close() error {
	err := r.group.Close()
	for _, l := range r.locks {
		l.Close()
	}
	return err
}

// ControlGroup is one control group in each hierarchy in use.
type ControlGroup struct {
	hierarchies []hierarchy
	number      atomic.Uint64 // of groups below: a container that is restarted gets a new one
}

func (g *ControlGroup) below(name string, memory uint64) (*ControlGroup, error) {
	child := &ControlGroup{}
	for _, p := range g.hierarchies {
		below := hierarchy{p.kind, filepath.Join(p.dir, name)}
		if err := os.Mkdir(below.dir, 0o755); err != nil {
			return nil, errors.Join(err, child.Close())
		}
		child.hierarchies = append(child.hierarchies, below)
	}
	if err := child.limit(memory); err != nil {
		return nil, errors.Join(fmt.Errorf("limit memory of %s to %d bytes: %w", name, memory, err), child.Close())
	}
	return child, nil
}

// limit sets the memory limit. The file that counts swap is not there on a
// host without swap accounting: then swap stays free.
func (g *ControlGroup) limit(memory uint64) error {
	if memory == 0 {
		return nil
	}
	bytes := strconv.FormatUint(memory, 10)
	for _, p := range g.hierarchies {
		var err error
		switch p.kind {
		case memoryV1:
			err = errors.Join(p.write("memory.limit_in_bytes", bytes), ignoreMissing(p.write("memory.memsw.limit_in_bytes", bytes)))
		case unified:
			err = errors.Join(p.write("memory.max", bytes), ignoreMissing(p.write("memory.swap.max", "0")))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// handDown lets groups below this one have their own limits, and takes from
// it the right to have processes; version 1 needs nothing for that.
func (g *ControlGroup) handDown() error {
	for _, p := range g.hierarchies {
		if p.kind == unified {
			return p.write("cgroup.subtree_control", "+memory")
		}
	}
	return nil
}

// add puts a process in; its children will be born into the group.
func (g *ControlGroup) add(pid int) error {
	for _, p := range g.hierarchies {
		if err := p.write("cgroup.procs", strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("put process %d into its control group: %w", pid, err)
		}
	}
	return nil
}

// outOfMemory reports whether the kernel has killed a process of this group for a
// memory limit, the group's own or one above it.
func (g *ControlGroup) outOfMemory() bool {
	for _, p := range g.hierarchies {
		switch p.kind {
		case memoryV1:
			return p.counter("memory.oom_control", "oom_kill") > 0
		case unified:
			return p.counter("memory.events", "oom_kill") > 0
		}
	}
	return false
}

// Close removes the group, and those that root in a container may have made in it. Its processes must be dead.
func (g *ControlGroup) Close() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, p := range g.hierarchies {
		errs = append(errs, remove(p.dir))
	}
	return errors.Join(errs...)
}

// remove waits until the kernel has seen that a group is empty.
func remove(dir string) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(closeTimeout)
	for {
		err := removeTree(dir)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline:
			return fmt.Errorf("remove control group %s: %w", dir, err)
		}
	}
}

// write does not ask for the file to be made: a hierarchy would answer "not permitted" instead of "not there".
func (p hierarchy) write(file, text string) error {
	f, err := os.OpenFile(filepath.Join(p.dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// counter returns a named number of a file, or the only one for an empty name; 0 when it is not there.
func (p hierarchy) counter(file, name string) uint64 {
	text, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil {
		return 0
	}
	return counter(text, name)
}

// lines returns how many a file has, 0 when it is not there.
func (p hierarchy) lines(file string) uint64 {
	text, _ := os.ReadFile(filepath.Join(p.dir, file))
	return uint64(bytes.Count(text, []byte("\n")))
}

func counter(text []byte, name string) uint64 {
	for line := range bytes.Lines(text) {
		value := strings.TrimSpace(string(line))
		if name != "" {
			var named bool
			if value, named = strings.CutPrefix(value, name+" "); !named {
				continue
			}
		}
		n, _ := strconv.ParseUint(value, 10, 64)
		return n
	}
	return 0
}

package runtime

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// startTimeout bounds the setup of a container. It takes milliseconds; a
// file system that does not answer is what takes longer.
const startTimeout = 30 * time.Second

func (r *Runtime) start(s Spec) (*Container, error) {
	config, warnings, err := r.config(s)
	if err != nil {
		return nil, err
	}
	unowned, err := claim(s.Image, s.Mounts, r.ids)
	if err != nil {
		return nil, err
	}
	p, err := newPipes(s)
	if err != nil {
		return nil, err
	}
	defer p.close()
	request, files := ownPIDs, p.files(s.netNS)
	if s.pids != nil {
		request, files = sharedPIDs, append(files, s.pids.pidfd)
	}
	child, err := r.spawn.clone(request, files...)
	if err != nil {
		return nil, err
	}
	p.closeChildEnds()
	n := &native{config: config, child: child, processes: NewProcesses(child.pid, child.pidfd), outputs: p.takeOutput()}
	if s.pids != nil {
		// An error means that it has ended, before it could have children.
		n.mounts, _ = os.Open(mountNamespacePath(child.pid))
	}
	n.group, err = s.budget.admit(child.pid, s.Memory)
	n.collect()
	c := NewContainer(n.processes, n, time.Time{}, append(warnings, unowned...))
	r.add(c)
	var lacks []string
	if err == nil {
		lacks, err = p.handshake(config)
	}
	if err != nil {
		c.Kill()
		<-c.Done()
		return nil, inImage(s.Image, err)
	}
	c.started, c.warnings = time.Now(), append(c.warnings, lacks...)
	return c, nil
}

// shownPaths is how many of an image's paths an error names.
const shownPaths = 6

// inImage adds to "no such program" what the image has: a container sees nothing else of this machine.
func inImage(i Image, err error) error {
	var report *stageError
	if !errors.As(err, &report) || report.Step != "" || !errors.Is(err, syscall.ENOENT) {
		return err
	}
	paths := slices.Sorted(maps.Keys(i.Programs))
	paths = append(paths, slices.Sorted(maps.Keys(i.Files))...) // directories of programs are among them
	more := ""
	if n := len(paths) - shownPaths; n > 1 {
		paths, more = paths[:shownPaths], fmt.Sprintf(" and %d more", n)
	}
	has := cmp.Or(strings.Join(paths, ", ")+more, "no programs")
	return fmt.Errorf("%w; image %q has %s", err, i.Name, has)
}

type pipes struct {
	null                     *os.File
	configRead, configWrite  *os.File
	statusRead, statusWrite  *os.File
	outputs                  []output
	stdoutWrite, stderrWrite *os.File
}

type output struct {
	from *os.File
	to   io.Writer
}

func newPipes(s Spec) (p *pipes, err error) {
	p = &pipes{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return p, err
	}
	if p.configRead, p.configWrite, err = os.Pipe(); err != nil {
		return p, err
	}
	if p.statusRead, p.statusWrite, err = os.Pipe(); err != nil {
		return p, err
	}
	if p.stdoutWrite, err = p.stream(s.Stdout); err != nil {
		return p, err
	}
	p.stderrWrite, err = p.stream(s.Stderr)
	return p, err
}

func (p *pipes) stream(to io.Writer) (*os.File, error) {
	if to == nil {
		return nil, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.outputs = append(p.outputs, output{read, to})
	return write, nil
}

// files returns the child's descriptors in order: standard ones, configuration, status, network.
func (p *pipes) files(netns *os.File) []*os.File {
	files := []*os.File{p.null, p.null, p.null, p.configRead, p.statusWrite}
	if p.stdoutWrite != nil {
		files[1] = p.stdoutWrite
	}
	if p.stderrWrite != nil {
		files[2] = p.stderrWrite
	}
	if netns != nil {
		files = append(files, netns)
	}
	return files
}

// takeOutput hands the reading ends over; close leaves them alone then.
func (p *pipes) takeOutput() []output {
	outputs := p.outputs
	p.outputs = nil
	return outputs
}

func (p *pipes) closeChildEnds() {
	closeAll(p.null, p.configRead, p.statusWrite, p.stdoutWrite, p.stderrWrite)
}

func (p *pipes) close() {
	p.closeChildEnds()
	closeAll(p.configWrite, p.statusRead)
	for _, o := range p.outputs {
		o.from.Close()
	}
}

// closeAll closes what is there. A second Close of an os.File does nothing.
func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// handshake sends the configuration and waits until the program runs. The status pipe ends by itself then, since it
// does not survive exec. warnings are what the first stage had to do without.
func (p *pipes) handshake(config stageConfig) (warnings []string, err error) {
	deadline := time.Now().Add(startTimeout)
	if err := errors.Join(p.configWrite.SetDeadline(deadline), p.statusRead.SetDeadline(deadline)); err != nil {
		return nil, err
	}
	body, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	// A first stage that ends early breaks the pipe; its reason is read below.
	_, writeErr := p.configWrite.Write(body)
	p.configWrite.Close()
	status, err := io.ReadAll(p.statusRead)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("the container was not set up in %s", startTimeout)
	}
	if err != nil {
		return nil, fmt.Errorf("read the container's status: %w", err)
	}
	warnings, report, ended := parseStatus(status)
	if ended {
		return nil, errors.Join(errors.New("container init exited before reporting its status: it was killed, or host.Dispatch(runtime.Role()) is not the first line of main"), writeErr)
	}
	if report != nil {
		return nil, report
	}
	return warnings, nil
}

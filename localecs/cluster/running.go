package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// errEnded means that a service has ended permanently.
var errEnded = errors.New("it has ended")

// Running is a started Service. It may be down for a while; it has ended when its process exited, or Stop was called.
type Running struct {
	LogFile string
	group   runtime.Group
	spec    runtime.Spec
	log     *logFile

	mu        sync.Mutex
	container *runtime.Container // the present or last one
	downs     int                // how many want it down
	ended     bool
	done      chan struct{} // closed when it has ended
}

func startProgram(ctx context.Context, g runtime.Group, log *logFile, spec runtime.Spec) (*Running, error) {
	s := &Running{LogFile: log.file.Name(), group: g, spec: spec, log: log, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.launch(ctx); err != nil {
		log.Close()
		return nil, err
	}
	return s, nil
}

// launch starts the process. The lock is held.
func (s *Running) launch(ctx context.Context) error {
	c, err := s.group.Start(ctx, s.spec)
	if err != nil {
		return err
	}
	s.container = c
	go func() {
		<-c.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.container == c && s.downs == 0 {
			s.end()
		}
	}()
	return nil
}

// end marks the service as ended. The lock is held.
func (s *Running) end() {
	if !s.ended {
		s.ended = true
		s.log.Close()
		close(s.done)
	}
}

// Done returns a channel that is closed when the service has ended permanently.
func (s *Running) Done() <-chan struct{} { return s.done }

// Stop kills the process and waits for its end.
func (s *Running) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.container.Kill()
	<-s.container.Done()
	s.end()
}

// Down kills the process, as kill -9 does, and waits for its end: connections are refused then. up starts it again,
// with the same directories, address and log; its error means that the service has ended. Of several concurrent Downs
// the last call of up starts it. up may be called more than once.
func (s *Running) Down() (up func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.downs == 0 && s.container.Exited() {
		s.end() // by itself, a moment ago
	}
	if s.ended {
		return nil, fmt.Errorf("kill %s: %w", s.spec.Name, errEnded)
	}
	s.downs++
	s.container.Kill()
	<-s.container.Done()
	return sync.OnceValue(s.up), nil
}

func (s *Running) up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.downs--
	if s.downs > 0 || s.ended {
		return nil
	}
	if err := s.launch(context.Background()); err != nil {
		s.end()
		return fmt.Errorf("start %s again: %w", s.spec.Name, err)
	}
	return nil
}

// Freeze stops the service's processes until end is called or they die: connections are accepted, but not answered.
func (s *Running) Freeze() (end func() error, err error) {
	return s.hold("freeze", (*runtime.Container).Freeze)
}

// Slow freezes the processes for four fifths of each quarter of a second.
func (s *Running) Slow() (end func() error, err error) {
	return s.hold("slow", (*runtime.Container).Slow)
}

func (s *Running) hold(verb string, hold holdFunc) (end func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, fmt.Errorf("%s %s: %w", verb, s.spec.Name, errEnded)
	}
	release, ok := hold(s.container, "")
	if !ok {
		return nil, fmt.Errorf("%s %s: it is down", verb, s.spec.Name)
	}
	return func() error { release(); return nil }, nil
}

package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// silence is how long the engine may report no progress.
	silence = 2 * time.Minute
	// pace is how often a pull that takes longer is logged.
	pace = 10 * time.Second
)

var errSilent = fmt.Errorf("the Docker engine reported no progress for %s: check the registry, or run docker pull", silence)

type flight struct {
	done chan struct{} // closed when the rest is set
	got  pulled
	err  error
	// abandoned: the context of the caller that began it has ended.
	abandoned bool
}

// pull gets an image once for all callers that want it at the same time. When the
// one that has started gives up, another begins anew.
func (s *store) pull(ctx context.Context, name string) (pulled, error) {
	for {
		s.mu.Lock()
		f, known := s.flights[name]
		if !known {
			f = &flight{done: make(chan struct{})}
			s.flights[name] = f
		}
		s.mu.Unlock()
		if !known {
			s.fly(ctx, name, f)
			return f.got, f.err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return pulled{}, ctx.Err()
		}
		if !f.abandoned {
			return f.got, f.err
		}
	}
}

// fly gets an image. One that was got is known until forget.
func (s *store) fly(ctx context.Context, name string, f *flight) {
	defer close(f.done)
	f.got, f.err = s.get(ctx, name)
	if f.err == nil {
		return
	}
	f.abandoned = ctx.Err() != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[name] == f {
		delete(s.flights, name)
	}
}

func (s *store) fetch(ctx context.Context, name string) error {
	return whileProgressing(ctx, func(ctx context.Context, progressed func()) error {
		body, err := s.api.ImagePull(ctx, name, client.ImagePullOptions{})
		if err != nil {
			return engineError(err)
		}
		defer body.Close()
		var p progress
		go s.logPull(ctx, name, &p)
		return follow(body, func(l line) {
			progressed()
			p.add(l)
		})
	})
}

func (s *store) logPull(ctx context.Context, name string, p *progress) {
	for began := time.Now(); retry.Sleep(ctx, pace) == nil; {
		s.log.Warn("image is still being pulled", logkey.Object, name, logkey.Elapsed, time.Since(began).Round(time.Second).String(), logkey.Status, p.String())
	}
}

// whileProgressing runs act with a context that ends when act has not called progressed for
// too long, and then returns an error that reports it.
func whileProgressing(ctx context.Context, act func(ctx context.Context, progressed func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer timer.Stop()
	err := act(ctx, func() { timer.Reset(silence) })
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

type line struct {
	Error, ID      string
	Status         string
	ProgressDetail struct{ Current, Total int64 }
}

func follow(report io.Reader, each func(line)) error {
	for lines := json.NewDecoder(report); ; {
		var l line
		switch err := lines.Decode(&l); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the engine's progress: %w", err)
		case l.Error != "":
			return errors.New(l.Error)
		}
		each(l)
	}
}

// progress adds up the layers of a pull. It is safe for concurrent use.
type progress struct {
	mu     sync.Mutex
	layers map[string]line // those whose download has started
}

func (p *progress) add(l line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.layers == nil {
		p.layers = map[string]line{}
	}
	if l.Status == "Downloading" {
		p.layers[l.ID] = l
	}
}

// String returns how much was downloaded of the layers so far.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var current, total int64
	for _, l := range p.layers {
		current, total = current+l.ProgressDetail.Current, total+l.ProgressDetail.Total
	}
	return fmt.Sprintf("%d of %d MB downloaded", current/1e6, total/1e6)
}

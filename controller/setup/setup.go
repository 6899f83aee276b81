package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

// Setup makes the ACL objects that one controller's tasks need. It is safe for
// concurrent use.
type Setup struct {
	// Client talks to Consul. Its requests must have a timeout.
	Client *api.Client
	Wanted State
	Log    hclog.Logger

	// logged are the notices that were logged: once is enough for one process.
	mu     sync.Mutex
	logged map[notice]struct{}
	// anonymous makes the line about the anonymous token one.
	anonymous sync.Once
}

// Ensure creates or corrects every wanted object. It may be called again at any
// time, and with nothing to do only reads. It returns the writes that it made beside a
// joined error of what failed; objects that do not need a failed one are ensured all
// the same. A *retry.PermanentError in it means that Consul refuses the token or has
// no ACLs, unless these are optional. Everything else may be retried, also an object
// that only an operator can correct, such as an auth method of another type.
func (s *Setup) Ensure(ctx context.Context) ([]Write, error) {
	state, hereErr := s.here(ctx)
	changes, err := s.ensure(ctx, state)
	if s.Wanted.Node != nil && consulutil.ACLsDisabled(err) {
		s.logNotices([]notice{{Text: noticeNoACLs}})
		state = s.Wanted.withoutACLs()
		var more []Write
		more, err = s.ensure(ctx, state)
		changes = append(changes, more...)
	}
	if err == nil && state.Anonymous != nil {
		// Tests of hashicorp's Terraform modules wait for this text.
		s.anonymous.Do(func() { s.Log.Info("Successfully configured the anonymous token") })
	}
	return changes, consulutil.Advise(errors.Join(hereErr, err))
}

func (s *Setup) ensure(ctx context.Context, state State) ([]Write, error) {
	return s.converge(ctx, func(ctx context.Context) (Plan, failures) {
		found, failed := s.read(ctx, state)
		return state.compare(found), failed
	})
}

// EnsureNamespaces creates the Enterprise namespaces that running tasks name, and
// the policy that lets their tasks see each other. Without a partition it does
// nothing. Results are as in Ensure.
func (s *Setup) EnsureNamespaces(ctx context.Context, names []string) ([]Write, error) {
	if s.Wanted.Partition == "" {
		return nil, nil
	}
	changes, err := s.converge(ctx, func(ctx context.Context) (Plan, failures) {
		found, failed := s.readNamespaces(ctx)
		if len(failed) > 0 {
			return Plan{}, failed
		}
		return s.Wanted.compareNamespaces(names, found), failed
	})
	return changes, consulutil.Advise(err)
}

// here returns the wanted state in the datacenter that answers: the anonymous token is that of
// the primary one. When that is unknown, the token is left alone and the rest is done.
func (s *Setup) here(ctx context.Context) (state State, err error) {
	state = s.Wanted
	if state.Anonymous == nil {
		return state, nil
	}
	primary, err := s.primary(ctx)
	if !primary {
		state.Anonymous = nil
	}
	return state, err
}

// converge makes a plan without the lock and, if that has a write that can be made,
// once more with it, and applies that.
func (s *Setup) converge(ctx context.Context, plan func(context.Context) (Plan, failures)) ([]Write, error) {
	p, failed := plan(ctx)
	if !failed.allow(p) {
		return nil, s.finish(p, failed)
	}
	l, err := s.acquire(ctx)
	if err != nil {
		return nil, errors.Join(err, s.finish(p, failed))
	}
	defer l.release(ctx)
	bounded, cancel, err := l.hold(ctx)
	if err != nil {
		return nil, err
	}
	p, failed = plan(bounded)
	cancel()
	changes := s.apply(ctx, l, p, failed)
	return changes, s.finish(p, failed)
}

// apply makes the writes of a plan in their order and puts what fails, and what
// needs that, into failed.
func (s *Setup) apply(ctx context.Context, l *lock, p Plan, failed failures) (changes []Write) {
	failed.refuse(p)
	for _, w := range p.Writes {
		if failed.any(w.Needs) {
			failed.skip(w.Object)
			continue
		}
		bounded, cancel, err := l.hold(ctx)
		if err != nil {
			failed[lockObject(s.Wanted)] = err
			return changes
		}
		err = s.explain(w.Object, s.write(bounded, l, w))
		cancel()
		if err != nil {
			verb := "correct"
			if w.Create {
				verb = "create"
			}
			failed[w.Object] = fmt.Errorf("%s %s: %w", verb, w.Object, err)
			continue
		}
		if s.hidden(ctx, w) {
			s.logNotices([]notice{{Text: noticeHiddenNode, Other: s.rule(w.Object)}})
			continue
		}
		changes = append(changes, w)
		if w.Create {
			s.Log.Info("created in consul", logkey.Object, w.Object.String())
		} else {
			s.Log.Info("corrected in consul", logkey.Object, w.Object.String(), logkey.Fields,
				strings.Join(w.Changed, ", "))
		}
	}
	return changes
}

// finish logs a plan's notices and joins the errors.
func (s *Setup) finish(p Plan, failed failures) error {
	s.logNotices(p.Notices)
	return errors.Join(append(failed.errors(), p.Refused.errors()...)...)
}

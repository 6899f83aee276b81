package relay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// scripted are servers by address, each with what it does.
type scripted struct {
	mu    sync.Mutex
	does  map[string]behaviour
	asked []string
}

// behaviour is what a server does after a delay.
type behaviour struct {
	after time.Duration
	code  dnsmessage.RCode
	err   error
}

// frozen never answers.
var frozen = behaviour{after: time.Hour}

func (s *scripted) exchange(ctx context.Context, address string, _ query) (reply, error) {
	s.mu.Lock()
	s.asked = append(s.asked, address)
	b := s.does[address]
	s.mu.Unlock()
	select {
	case <-time.After(b.after):
		if b.err != nil {
			return reply{}, b.err
		}
		return reply{message: []byte(address), code: b.code}, nil
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
}

// set changes what a server does, and forgets what was asked.
func (s *scripted) set(address string, b behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.does[address], s.asked = b, nil
}

// order returns the servers in the order in which they were asked.
func (s *scripted) order() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// newAsker asks servers a, b and c, in that order.
func newAsker(does map[string]behaviour) (*asker, *scripted) {
	s := &scripted{does: does}
	return &asker{known: func() []string { return []string{"a", "b", "c"} }, exchange: s.exchange}, s
}

func TestAskTakesTheNextServer(t *testing.T) {
	t.Parallel()
	refused := errors.New("connection refused")
	failed := behaviour{code: dnsmessage.RCodeServerFailure}
	for what, c := range map[string]struct {
		does  map[string]behaviour
		want  string
		code  dnsmessage.RCode
		err   bool
		asked []string
		took  time.Duration
	}{
		"all serve": {nil, "a", 0, false, []string{"a"}, 0},
		"a name of no service": {
			map[string]behaviour{"a": {code: dnsmessage.RCodeNameError}}, "a", dnsmessage.RCodeNameError, false,
			[]string{"a"}, 0,
		},
		"one refuses":         {map[string]behaviour{"a": {err: refused}}, "b", 0, false, []string{"a", "b"}, 0},
		"one fails to answer": {map[string]behaviour{"a": failed}, "b", 0, false, []string{"a", "b"}, 0},
		"one is late": {
			map[string]behaviour{"a": {after: anotherAfter + 1}, "b": {after: time.Second}}, "a", 0, false,
			[]string{"a", "b"}, anotherAfter + 1,
		},
		"one is frozen": {map[string]behaviour{"a": frozen}, "b", 0, false, []string{"a", "b"}, anotherAfter},
		"frozen, and refusing": {
			map[string]behaviour{"a": frozen, "b": {err: refused}}, "c", 0, false, []string{"a", "b", "c"},
			anotherAfter,
		},
		"all fail to answer": {
			map[string]behaviour{"a": failed, "b": failed, "c": failed}, "c", dnsmessage.RCodeServerFailure, false,
			[]string{"a", "b", "c"}, 0,
		},
		"one fails, two refuse": {
			map[string]behaviour{"a": failed, "b": {err: refused}, "c": {err: refused}}, "a",
			dnsmessage.RCodeServerFailure, false,
			[]string{"a", "b", "c"}, 0,
		},
		"all refuse": {
			map[string]behaviour{"a": {err: refused}, "b": {err: refused}, "c": {err: refused}}, "", 0, true,
			[]string{"a", "b", "c"}, 0,
		},
		"two are frozen": {
			map[string]behaviour{"a": frozen, "b": frozen}, "c", 0, false, []string{"a", "b", "c"}, 2 * anotherAfter,
		},
		"all are frozen": {
			map[string]behaviour{"a": frozen, "b": frozen, "c": frozen}, "", 0, true, []string{"a", "b", "c"}, askLimit,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if c.does == nil {
					c.does = map[string]behaviour{}
				}
				a, s := newAsker(c.does)
				begin := time.Now()
				got, err := a.ask(t.Context(), query{})
				if took := time.Since(begin); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				if string(got.message) != c.want || got.code != c.code {
					t.Errorf("got %q with code %d, want %q with %d", got.message, got.code, c.want, c.code)
				}
				if (err != nil) != c.err {
					t.Errorf("error %v", err)
				}
				if asked := s.order(); !slices.Equal(asked, c.asked) {
					t.Errorf("asked %v, want %v", asked, c.asked)
				}
			})
		})
	}
}

// TestServersThatWereLateAreAskedLast: for a while, or until they answer.
func TestServersThatWereLateAreAskedLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, s := newAsker(map[string]behaviour{"a": frozen})
		ask := func(want string, took time.Duration) {
			t.Helper()
			begin := time.Now()
			got, err := a.ask(t.Context(), query{})
			if err != nil || string(got.message) != want {
				t.Errorf("got %q, %v, want %q", got.message, err, want)
			}
			if d := time.Since(begin); d != took {
				t.Errorf("took %s, want %s", d, took)
			}
		}
		ask("b", anotherAfter)
		ask("b", 0)
		s.set("b", behaviour{err: errors.New("connection refused")})
		ask("c", 0)
		s.set("a", behaviour{})
		s.set("c", behaviour{err: errors.New("connection refused")})
		ask("a", 0)
		ask("a", 0)
		if asked, want := s.order(), []string{"c", "a", "a"}; !slices.Equal(asked, want) {
			t.Errorf("asked %v, want %v: a serves again", asked, want)
		}
		<-time.After(lastFor)
		s.set("b", behaviour{})
		s.set("a", behaviour{err: errors.New("connection refused")})
		ask("b", 0)
	})
}

func TestClientsWaitBrieflyWhileNoServerAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, s := newAsker(map[string]behaviour{"a": frozen, "b": frozen, "c": frozen})
		limits := func(when string, want time.Duration) {
			t.Helper()
			if got := a.limit(); got != want {
				t.Errorf("%s: clients wait for %s, want %s", when, got, want)
			}
		}
		limits("at first", askLimit)
		_, _ = a.ask(t.Context(), query{})
		limits("after a query in vain", shortLimit)
		s.set("c", behaviour{code: dnsmessage.RCodeServerFailure})
		_, _ = a.ask(t.Context(), query{})
		limits("after a failure that a server sent", askLimit)
	})
}

func TestAskWithoutServers(t *testing.T) {
	t.Parallel()
	a := &asker{known: func() []string { return nil }}
	if _, err := a.ask(t.Context(), query{}); !errors.Is(err, errNoServer) {
		t.Errorf("got %v", err)
	}
	if a.limit() != askLimit {
		t.Error("that is taken for an outage")
	}
}

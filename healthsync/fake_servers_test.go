package healthsync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// put is one write of checks into the servers' catalog; At is virtual time since the
// start. Checks are statuses by check ID without the service's, "" for its aggregate.
type put struct {
	At     time.Duration
	Checks map[string]string
}

// catalog is the narrowest fake of the servers: it records each write.
type catalog struct {
	*agent  // nil: its methods are not called
	servers *logout
	mu      sync.Mutex
	start   time.Time
	checks  map[string]string
	puts    []put
	tokens  []string // distinct ones, as they were presented
	answer  func(put) error
	byToken func(token string) error
	lost    bool   // until the next write
	last    int    // updates of a task that ends
	version string // of the last workload
	// output gets each output that differs from the one before of its check.
	output  func(string)
	outputs map[string]string
}

func (c *catalog) Refresh() time.Duration { return 30 * time.Second }

func (c *catalog) Deregister(ctx context.Context, token string, w workload.Workload) error {
	return c.servers.deregister(ctx, token, w)
}

func (c *catalog) Set(
	ctx context.Context, token string, w workload.Workload, updates []registrar.Update,
) []registrar.Result {
	c.mu.Lock()
	p := put{time.Since(c.start), map[string]string{}}
	refresh := true
	c.version = w.Meta["mesh-init-version"]
	for _, u := range updates {
		p.Checks[strings.TrimPrefix(u.Check.ID, w.ID+"-")] = u.Status
		refresh = refresh && u.Refresh
		if u.Last {
			c.last++
		}
		if c.output != nil && c.outputs[u.Check.ID] != u.Output {
			c.outputs[u.Check.ID] = u.Output
			c.output(u.Output)
		}
	}
	if !slices.Contains(c.tokens, token) {
		c.tokens = append(c.tokens, token)
	}
	answer, lost := c.answer, c.lost
	if c.byToken != nil {
		if err := c.byToken(token); err != nil {
			c.mu.Unlock()
			return slices.Repeat([]registrar.Result{{Err: err}}, len(updates))
		}
	}
	c.mu.Unlock()
	var err error
	if answer != nil {
		err = answer(p)
	}
	if errors.Is(err, errHang) {
		<-ctx.Done()
		err = fmt.Errorf("put: %w", ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !refresh || lost {
		c.puts = append(c.puts, p)
	}
	if err == nil {
		maps.Copy(c.checks, p.Checks)
		c.lost = false
	}
	return slices.Repeat([]registrar.Result{{Err: err, Unsure: unsure(err), Restored: lost && err == nil}},
		len(updates))
}

func (c *catalog) setToken(f func(token string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byToken = f
}

func (c *catalog) setAnswer(f func(put) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

// presented returns the tokens of the writes so far, distinct.
func (c *catalog) presented() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tokens)
}

// lastUpdates counts the updates so far of a task that ends.
func (c *catalog) lastUpdates() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// status returns that of a check, as the last write has left it.
func (c *catalog) status(check string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.checks[check]
}

// lose removes the task from the catalog until the next write.
func (c *catalog) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = true
}

// recorded returns the writes so far, and forgets them.
func (c *catalog) recorded() []put {
	c.mu.Lock()
	defer c.mu.Unlock()
	puts := c.puts
	c.puts = nil
	return puts
}

// logins is where a task logs in: each token has the life.
type logins struct {
	mu     sync.Mutex
	life   time.Duration // 0: tokens do not expire
	ahead  time.Duration // of our clock
	born   map[string]time.Time
	made   []string
	reads  int
	calls  int
	answer func() error // before a token is made
	slow   time.Duration
	gone   bool // the service token is unknown
	unread error
}

func (l *logins) token(secret string, born time.Time) consulutil.Token {
	t := consulutil.Token{Accessor: "accessor of " + secret, Secret: secret, Created: born.Add(l.ahead)}
	if l.life > 0 {
		t.Expires = t.Created.Add(l.life)
	}
	return t
}

func (l *logins) read(_ context.Context, secret string) (consulutil.Token, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if l.unread != nil {
		return consulutil.Token{}, l.unread
	}
	if l.gone {
		return consulutil.Token{}, api.StatusError{Code: http.StatusForbidden, Body: "ACL not found"}
	}
	if l.born == nil {
		l.born = map[string]time.Time{}
	}
	if l.born[secret].IsZero() {
		l.born[secret] = time.Now()
	}
	return l.token(secret, l.born[secret].Add(-l.ahead)), nil // by our clock
}

// logIn, once it is slow, does not end with its context.
func (l *logins) logIn(_ context.Context, w workload.Workload, t workload.Task) (consulutil.Token, error) {
	l.mu.Lock()
	answer, slow := l.answer, l.slow
	l.calls++
	l.mu.Unlock()
	if slow > 0 {
		<-time.After(slow)
	}
	if answer != nil {
		if err := answer(); err != nil {
			return consulutil.Token{}, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.TaskARN != taskARN || w.ID == "" {
		panic("logged in for another task")
	}
	l.made = append(l.made, fmt.Sprint("renewed-", len(l.made)+1))
	l.gone = false
	return l.token(l.made[len(l.made)-1], time.Now()), nil
}

// done returns the secrets of the logins so far, and how often a token was read.
func (l *logins) done() (made []string, reads int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.made), l.reads
}

// tokens returns the secrets of the logins so far.
func (l *logins) tokens() []string {
	made, _ := l.done()
	return made
}

// requested reports whether a login was asked for.
func (l *logins) requested() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls > 0
}

func (l *logins) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// atServers runs a test of a task without an agent, in which Envoy is healthy and stops a
// second after TERM.
func atServers(t *testing.T, containers []string, test func(*fixture)) {
	t.Helper()
	inBubble(t, containers, func(r *fixture) {
		r.cfg.ConsulServers = &config.ConsulServers{Hosts: "consul.example"}
		r.cfg.ConsulHTTPAddr = ""
		r.cfg.Proxy.Mode, r.cfg.Proxy.HealthCheckPort = config.ProxyDirect, 22000
		r.catalog = &catalog{servers: r.servers, start: time.Now(), checks: map[string]string{},
			outputs: map[string]string{}}
		r.metadata.address = "10.0.0.9"
		r.serves = func(context.Context, int, string) error { return errRefused }
		r.metadata.set(map[string]string{"app": "HEALTHY", "sidecar-proxy": "HEALTHY"}, nil)
		test(r)
	})
}

// end sends TERM to the whole task, whose other containers stop a second later.
func (r *fixture) end() (time.Duration, error) {
	time.AfterFunc(sec, func() { r.metadata.stop("app", "side", "sidecar-proxy", "consul-dataplane") })
	return r.term()
}

func (r *fixture) wantPuts(want ...put) {
	r.t.Helper()
	if d := cmp.Diff(want, r.catalog.recorded()); d != "" {
		r.t.Errorf("writes (-want +got):\n%s", d)
	}
}

// wantAllLoggedOut checks that every token of the run ends with it: first is mesh-init's.
func (r *fixture) wantAllLoggedOut(first string) {
	r.t.Helper()
	for _, secret := range append([]string{first}, r.logins.made...) {
		if !slices.Contains(r.logout.distinct(), secret) {
			r.t.Errorf("token %s was not logged out, only %v", secret, r.logout.distinct())
		}
	}
}

// content returns the content of a file of the bootstrap directory.
func (r *fixture) content(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(r.cfg.BootstrapDir + "/" + name)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

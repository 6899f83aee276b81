package healthsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestChecksConverge runs health-sync without an agent against random reports of ECS, outages
// of its endpoint, ports that close, and servers that fail, or apply a write that they did not
// answer up to 5 s later. Whatever happened, the check is what was seen last soon after the
// servers serve again, also while the endpoint is still away.
func TestChecksConverge(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			inCounted(t, random.IntN(2) == 0, func(c *counted) { converges(c, random) })
		})
	}
}

func converges(c *counted, random *rand.Rand) {
	p := &ports{}
	c.accepts = func(ctx context.Context, _ string) error { return p.accepts(ctx, "") }
	faults := &faults{c: c, random: rand.New(rand.NewPCG(random.Uint64(), 2))}
	c.run()
	c.advance(sec)
	c.breaks(faults.answer)
	health, away, closed := "HEALTHY", false, false
	for range random.IntN(30) {
		switch random.IntN(4) {
		case 0:
			away = !away
		case 1:
			closed = !closed
			p.close(closed)
		case 2:
			faults.next()
		case 3:
			if away { // it would not be seen
				continue
			}
			health = []string{"HEALTHY", "UNHEALTHY"}[random.IntN(2)]
		}
		c.reports(health, away)
		c.advance(writeTimeout + sec + time.Duration(random.IntN(int(20*sec)))) // seen after a write that hangs
	}
	c.fail.Store(nil)
	c.advance(45 * sec)
	want := "critical"
	if health == "HEALTHY" && !(away && closed) {
		want = "passing"
	}
	if got := c.s.status("web-0f9de17a-app"); got != want {
		c.t.Errorf("the check is %s, want %s; endpoint away: %t, port closed: %t\n%s", got, want, away, closed, c.log)
	}
	c.reports(health, false)
	c.end()
}

// reports sets what ECS reports, and whether its endpoint is away.
func (c *counted) reports(health string, away bool) {
	var err error
	if away {
		err = errors.New("connection refused")
	}
	c.metadata.set(map[string]string{"app": health, "sidecar-proxy": "HEALTHY"}, err)
}

// faults are those of the servers, another one after each next.
type faults struct {
	c *counted

	mu     sync.Mutex
	random *rand.Rand
	kind   int
}

func (f *faults) next() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kind = f.random.IntN(5)
}

func (f *faults) answer(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	kind, lost, late := f.kind, f.random.IntN(2) == 0, time.Duration(f.random.IntN(int(5*sec)))
	f.mu.Unlock()
	switch {
	case kind == 1:
		return testkit.Refuse(r)
	case kind == 2:
		return testkit.NoLeader(r)
	case kind == 3:
		return testkit.Refused(http.StatusTooManyRequests, "too many requests")(r)
	case kind == 4 && lost && testkit.Kind(r) == "catalog/register":
		write := body(r)
		time.AfterFunc(late, func() { f.c.s.apply(write) })
		return nil, io.ErrUnexpectedEOF
	}
	return nil, nil
}

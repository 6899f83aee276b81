package healthsync

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestCriticalIsLatched runs health-sync against random orders of metadata
// answers, outages, agent faults and the moment of SIGTERM. Whatever happened
// before, after the signal no write says passing, no passing write that was
// on its way survives, and the run ends inside its stop timeout.
func TestCriticalIsLatched(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, []string{"a", "b"}, func(r *fixture) { latched(r, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func latched(r *fixture, random *rand.Rand) {
	if random.IntN(2) == 0 {
		r.login("service-secret", "client-secret")
	}
	weather := &weather{random: rand.New(rand.NewPCG(random.Uint64(), 2))}
	r.agent.late = time.Duration(1 + random.IntN(int(900*time.Millisecond)))
	r.agent.setAnswer(weather.answer)
	r.run()
	for range random.IntN(40) {
		r.metadata.set(weather.metadata())
		if random.IntN(15) == 0 {
			r.agent.forget()
		}
		r.advance(time.Duration(random.IntN(int(1500 * time.Millisecond))))
	}
	r.agent.recorded()
	termAt := time.Since(r.agent.start)
	took, err := r.term()
	for _, o := range r.agent.recorded() {
		if o.Status == "passing" {
			r.t.Errorf("%s %s %s at %s, after the signal at %s", o.Verb, o.Check, o.Status, o.At, termAt)
		}
	}
	if took > 27*time.Second {
		r.t.Errorf("the drain took %s", took)
	}
	if err != nil {
		return // it says itself that a check may be left
	}
	r.advance(5 * time.Second) // less than the TTL: nothing expires here
	if len(r.servers.distinct()) > 0 {
		return // the agent is gone with its checks, which this fake keeps
	}
	for _, name := range []string{"a", "b"} {
		if check := r.agent.checks[name]; check != nil && check.status != "critical" {
			r.t.Errorf("check of %s was left %s\n%s", name, check.status, r.log)
		}
	}
}

// weather makes faults. It comes in spells, so that some runs see long
// outages and others none.
type weather struct {
	mu     sync.Mutex
	random *rand.Rand
	spell  int
	left   int
}

func (w *weather) metadata() (map[string]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.random.IntN(8) {
	case 0:
		return nil, errors.New("status 500")
	case 1:
		return nil, errHang
	}
	words := []string{"HEALTHY", "HEALTHY", "HEALTHY", "UNHEALTHY", "UNKNOWN", ""}
	health := map[string]string{}
	for _, name := range []string{"a", "b"} {
		if w.random.IntN(6) > 0 {
			health[name] = words[w.random.IntN(len(words))]
		}
	}
	return health, nil
}

func (w *weather) answer(op) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left--; w.left < 0 {
		w.left = w.random.IntN(12)
		w.spell = w.random.IntN(8)
	}
	switch w.spell {
	case 0:
		return errRefused
	case 1:
		return errServer
	case 2:
		return errHang
	default:
		return nil
	}
}

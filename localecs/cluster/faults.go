package cluster

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/chaos"
)

// Faults are what goes wrong with the endpoints of a cluster now. Several may apply to one request, in this order:
//
//  1. skew and noTags change what the endpoint knows; skews add up.
//  2. hang waits until all hangs are over.
//  3. slow waits; of several the longest counts.
//  4. status answers instead of the endpoint, which does not get the request; of
//     several the first that began.
//  5. wrong, where there is no status, replaces the answer, likewise. The endpoint
//     gets the request where the answer is its own: empty, truncated.
//  6. cut ends whatever answer there is in its middle.
//
// The zero Faults has none.
type Faults struct {
	mu  sync.Mutex
	now []*activeFault // in the order of their beginning
}

// activeFault is a fault that has started.
type activeFault struct {
	fault chaos.Endpoint
	seed  uint64
	over  chan struct{}
	// draws are by task: each task's n-th request has the n-th number.
	draws map[string]*rand.Rand
}

// Begin lets a fault begin, until end is called. Its Task is the name of a task that may not have started yet. With the
// same seed, the n-th request that a fault's share is drawn for has the same result; requests are counted from the
// beginning of the fault, for each task's endpoint by itself.
func (f *Faults) Begin(e chaos.Endpoint, seed uint64) (end func()) {
	r := &activeFault{fault: e, seed: seed, over: make(chan struct{}), draws: map[string]*rand.Rand{}}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = append(f.now, r)
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.now = slices.DeleteFunc(f.now, func(other *activeFault) bool { return other == r })
		close(r.over)
	})
}

// matching returns the faults that apply to the next request of an endpoint. task is
// empty for an endpoint that all tasks share.
func (f *Faults) matching(endpoint, task string) []*activeFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var matching []*activeFault
	for _, r := range f.now {
		if r.fault.Name == endpoint && (r.fault.Task == "" || r.fault.Task == task) && r.draw(task) {
			matching = append(matching, r)
		}
	}
	return matching
}

// draw reports whether the next request is of the share to which the fault applies.
func (r *activeFault) draw(task string) bool {
	if r.fault.Share == 0 {
		return true
	}
	if r.draws[task] == nil {
		what := fnv.New64a()
		what.Write([]byte(r.fault.String() + "\x00" + task))
		r.draws[task] = rand.New(rand.NewPCG(r.seed, what.Sum64()))
	}
	return r.draws[task].Float64() < r.fault.Share
}

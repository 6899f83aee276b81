package healthsync

import (
	"time"

	"github.com/meshtask/consul-ecs/internal/retry"
)

// failingBase and failingMax bound the pauses between writes while they fail. They do not
// grow with an agent, which serves this task alone, and whose TTLs must be kept.
const failingBase, failingMax = time.Second, 15 * time.Second

// pacer spaces the writes of checks while they fail: all tasks write to the same servers.
type pacer struct {
	backoff retry.Backoff
	next    time.Time // zero while writes succeed
	// hurried is when a write was made before its time.
	hurried time.Time
	// tried are the statuses of the last attempt by check ID.
	tried map[string]string
}

func newPacer(agentless bool) pacer {
	longest := failingMax
	if !agentless {
		longest = failingBase
	}
	return pacer{backoff: retry.Backoff{Base: failingBase, Max: longest}}
}

// holds reports whether the changes wait for the end of a pause. A new status is tried at
// once, but only once in the time of the longest pause.
func (p *pacer) holds(now time.Time, changes []change) bool {
	if !now.Before(p.next) {
		return false
	}
	if now.Sub(p.hurried) < p.backoff.Max || !p.differ(changes) {
		return true
	}
	p.hurried = now
	return false
}

// differ reports whether there is a status that was not tried last.
func (p *pacer) differ(changes []change) bool {
	for _, c := range changes {
		if !c.refresh && p.tried[c.check.ID] != c.observed.status() {
			return true
		}
	}
	return false
}

// record takes an attempt, and whether it is to be repeated.
func (p *pacer) record(now time.Time, changes []change, again bool) {
	if !again {
		p.backoff.Reset()
		p.next, p.tried = time.Time{}, nil
		return
	}
	p.next = now.Add(p.backoff.Next())
	p.tried = map[string]string{}
	for _, c := range changes {
		p.tried[c.check.ID] = c.observed.status()
	}
}

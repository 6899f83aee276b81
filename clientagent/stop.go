package clientagent

import (
	"time"

	"github.com/meshtask/consul-ecs/workload"
)

// phase is how far the end of the agent has come.
type phase int

const (
	serving phase = iota // no TERM yet
	waiting              // TERM came; other containers may need the agent
	leaving              // the agent was told to leave
	killed               // it did not
)

// schedule says how long after TERM each phase ends at the latest.
type schedule struct {
	// siblings is for the other containers, leave for the agent, done for the
	// logout.
	siblings, leave, done time.Duration
}

// plan shares the stop timeout out. A leave takes consul 3 to 4 s and has 7.5:
// an agent that has not left stays in the catalog as failed, while a token that
// was not logged out is the controller's.
func plan(stop time.Duration) schedule {
	reserve := min(workload.LeaveReserve, stop)
	return schedule{siblings: stop - reserve, leave: stop - reserve/4, done: stop - reserve/20}
}

// rest is how long the phase may yet last, that long after TERM; bounded is
// false when no time ends it.
func (s schedule) rest(p phase, since time.Duration) (rest time.Duration, bounded bool) {
	switch p {
	case waiting:
		return s.siblings - since, true
	case leaving:
		return s.leave - since, true
	}
	return 0, false
}

// next is the phase after p, that long after TERM; alone says that all other
// containers are known to have stopped. There is no way back.
func (s schedule) next(p phase, since time.Duration, alone bool) phase {
	switch {
	case p == waiting && (alone || since >= s.siblings):
		return leaving
	case p == leaving && since >= s.leave:
		return killed
	}
	return p
}

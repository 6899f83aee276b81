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
	leaving              // the agent got TERM, and leaves
	exiting              // its leave is known to the servers; it got a second TERM
	killed               // it did not end
)

// exitDelay is the time between the removal of the agent's node from the catalog, which
// proves that the servers know of its leave, and the second TERM. The agent repeats
// its leave every 200 ms to some of its peers meanwhile; the servers pass it on, too.
// Without a second TERM consul stays for 3 s (serf's LeavePropagateDelay), whether
// anything is left to do or not.
const exitDelay = 500 * time.Millisecond

// deadline returns when the phase ends at the latest, counted from TERM; bounded is false
// when no time ends it.
func deadline(b workload.StopBudget, p phase) (at time.Duration, bounded bool) {
	switch p {
	case waiting:
		return b.Leave, true
	case leaving, exiting:
		return b.KillAgent, true
	}
	return 0, false
}

// next returns the phase after p, that long after TERM. awaited reports that what p waits for
// has happened: all other containers have stopped, or the servers have known of the leave
// for exitDelay. There is no way back.
func next(b workload.StopBudget, p phase, since time.Duration, awaited bool) phase {
	at, bounded := deadline(b, p)
	switch over := bounded && since >= at; {
	case p == waiting && (awaited || over):
		return leaving
	case over:
		return killed
	case p == leaving && awaited:
		return exiting
	}
	return p
}

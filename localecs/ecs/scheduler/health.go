package scheduler

import (
	"fmt"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
)

const maxHealthOutput = 1024

// HealthOutput returns the part of a check's output that ECS shows: 1,024 bytes at most, without half
// a character at the end.
func HealthOutput(whole string) string {
	return strings.ToValidUTF8(whole[:min(len(whole), maxHealthOutput)], "")
}

// health is the probe engine of one container.
type health struct {
	interval, timeout, startPeriod time.Duration
	retries                        int
	timeoutText                    string

	shown     HealthView
	streak    int // counted failures in a row
	probing   bool
	probeSent time.Time
	nextProbe time.Time
}

func newHealth(def *taskdef.HealthCheck, opts Options) *health {
	timeout := taskdef.Or(def.Timeout, taskdef.DefaultHealthTimeout)
	return &health{
		interval:    opts.scaled(taskdef.Or(def.Interval, taskdef.DefaultHealthInterval)),
		timeout:     opts.scaled(timeout),
		startPeriod: opts.scaled(taskdef.Or(def.StartPeriod, 0)),
		retries:     taskdef.Or(def.Retries, taskdef.DefaultHealthRetries),
		timeoutText: fmt.Sprintf("Health check exceeded timeout (%s)", time.Duration(timeout)*time.Second),
	}
}

// reset puts the health back to starting.
func (h *health) reset() {
	h.shown, h.streak, h.probing = HealthView{}, 0, false
}

// begin schedules the first probe: one interval after the start, never at once.
func (h *health) begin(startedAt time.Time) {
	h.reset()
	h.nextProbe = startedAt.Add(h.interval)
}

// record takes a probe's result. Results from before a restart are dropped.
func (h *health) record(ev ProbeDone, runStartedAt, now time.Time) {
	began := orNow(ev.StartedAt, h.probeSent)
	if !h.probing || began.Before(runStartedAt) {
		return
	}
	h.probing = false
	h.nextProbe = orNow(ev.At, now).Add(h.interval)
	if ev.TimedOut {
		ev.Code, ev.Output = -1, h.timeoutText
	}
	if ev.Code == 0 {
		h.streak = 0
		h.change(HealthHealthy, ev, now)
		return
	}
	if h.shown.Status == HealthStarting && began.Before(runStartedAt.Add(h.startPeriod)) {
		return
	}
	h.streak++
	if h.streak >= h.retries {
		h.change(HealthUnhealthy, ev, now)
	}
}

// change shows a new status. Nothing is updated while the status stays, and
// the exit code of a fault survives the recovery, as on ECS.
func (h *health) change(status string, deciding ProbeDone, now time.Time) {
	if h.shown.Status == status {
		return
	}
	h.shown.Status = status
	h.shown.Since = now
	h.shown.Output = HealthOutput(deciding.Output)
	if status == HealthUnhealthy {
		h.shown.ExitCode = deciding.Code
	}
}

// probe asks for the probes that are due, also while a container is being
// stopped.
func (t *Task) probe(now time.Time) {
	for _, c := range t.containers {
		if h := c.health; c.running() && h != nil && !h.probing && !now.Before(h.nextProbe) {
			h.probing = true
			h.probeSent = now
			t.act(Probe{Container: c.name, Timeout: h.timeout})
		}
	}
}

package simulated

import (
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// entry is a task of the launcher.
type entry struct {
	launch     controlplane.Launch
	task       *Task
	address    *controlplane.Network // nil where there was none
	containers map[string]controlplane.ContainerFacts

	due time.Time
	at  int // its place in the heap, -1 for none

	ran, ended bool
	waiting    []waiter
}

// waiter waits until a task has been RUNNING, or is STOPPED.
type waiter struct {
	status string
	done   chan struct{}
}

// reached notes what a task's waiters want to know.
func (e *entry) reached(r controlplane.Report) {
	e.ran = e.ran || r.View.KnownStatus == scheduler.StatusRunning || r.Gone
	e.ended = e.ended || r.Gone
}

// satisfied are the waiters that have what they want; they are forgotten.
func (e *entry) satisfied() (done []chan struct{}) {
	e.waiting = slices.DeleteFunc(e.waiting, func(w waiter) bool {
		reached := e.ended || e.ran && w.status == shapes.Running
		if reached {
			done = append(done, w.done)
		}
		return reached
	})
	return done
}

// dueHeap has the tasks that wait for a time, the earliest first.
type dueHeap []*entry

// Len implements heap.Interface.
func (h dueHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

// Swap implements heap.Interface.
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	e := x.(*entry)
	e.at = len(*h)
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.at = -1
	return e
}

package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
)

// limits define the proof that a task which ECS does not know has ended. One that ECS
// shows as STOPPED needs no further proof: it never runs again.
type limits struct {
	// grace is how old the task must be: its newest token, by the clock of
	// Consul's servers, or without a token the time since we first missed it. AWS
	// documents that a new task may be unknown for minutes (ECS API Reference, RunTask).
	grace time.Duration
	// minAbsence is how long the task must have been missing, by our monotonic clock, at
	// two looks and all between them.
	minAbsence time.Duration
}

// defaultLimits returns five minutes of grace, and a minute between two looks.
func defaultLimits() limits { return limits{grace: 5 * time.Minute, minAbsence: time.Minute} }

// KeepReason is why the leftovers of a task that is not running stay: a value of the
// metric kept_tasks and of the plan's JSON.
type KeepReason string

// The reasons; docs/CONTROLLER.md explains them to operators.
const (
	// KeepRunning: ECS does not list the task as running, but describes it with
	// another status than STOPPED.
	KeepRunning KeepReason = "running"
	// KeepStopping: the task's desired status is STOPPED, its last status is not.
	KeepStopping KeepReason = "stopping"
	// KeepUnknown: ECS gave no answer for the task, or one that is not understood.
	KeepUnknown KeepReason = "unknown"
	// KeepMissingRecheck: ECS does not know the task, which a later pass must confirm.
	KeepMissingRecheck KeepReason = "missing_recheck"
	// KeepMissingYoung: ECS does not know the task, which may be too new for it.
	KeepMissingYoung KeepReason = "missing_young"
	// KeepMissingAmbiguous: ECS does not know the task, which may belong to another
	// cluster of the same name.
	KeepMissingAmbiguous KeepReason = "missing_ambiguous"
)

// Text returns the reason as a phrase for printed plans.
func (r KeepReason) Text() string {
	switch r {
	case KeepMissingRecheck:
		return "missing, to be confirmed by a later pass"
	case KeepMissingYoung:
		return "missing, below the minimum age"
	case KeepMissingAmbiguous:
		return "missing, but possibly a task of another cluster of this name"
	}
	return string(r)
}

// observation is what ECS answered for a task in one pass.
type observation struct {
	// Last and Desired are the task's statuses; Last is awsutil.TaskMissing when its own
	// ID is unknown and no list has it, and empty if there was no usable answer.
	Last, Desired string
	// Detail is for logs and printed plans.
	Detail string
}

// snapshot is what one pass has read.
type snapshot struct {
	Tokens   []Token
	Services []Service
	// Partial means that there may be more tokens and services.
	Partial bool
	// ConsulTime is when the tokens were read, by the server's clock; ConsulAt the
	// same by the Cleaner's, and AskedAt is when ECS was first asked.
	ConsulTime        time.Time
	ConsulAt, AskedAt time.Duration
	// Running are the tasks that ECS lists as such, Observations all others of which
	// there is a token or a service.
	Running      map[string]struct{}
	Observations map[string]observation
}

// memory is what earlier passes observed.
type memory struct {
	// missing is since when a task has been missing at every look: one without an
	// answer resets it.
	missing map[string]time.Duration
	// ours are tasks that ECS has shown as this cluster's.
	ours map[string]struct{}
	// consul was Consul's time at the last look, which was at lookedAt.
	consul   time.Time
	lookedAt time.Duration
	// trusted is from when on ages by Consul's clock are valid: it was set, and then the
	// time passed that they are to prove.
	trusted time.Duration
}

// clockLeeway is how much Consul's clock, which has a resolution of a second and is read from
// several servers, may differ from ours between two looks.
const clockLeeway = 30 * time.Second

// watch records Consul's time, and whether its clock was set.
func (m *memory) watch(before memory, consul time.Time, now time.Duration, l limits) {
	m.consul, m.lookedAt, m.trusted = consul, now, before.trusted
	if consul.IsZero() {
		m.consul, m.lookedAt = before.consul, before.lookedAt
	} else if drift := consul.Sub(before.consul) - (now - before.lookedAt); !before.consul.IsZero() &&
		drift.Abs() > clockLeeway {
		m.trusted = now + l.grace
	}
}

// Item is one thing to delete.
type Item struct {
	// Kind is KindToken, KindService or KindNode.
	Kind string `json:"kind"`
	Task string `json:"task_id"`
	// Accessor and Method are a token's.
	Accessor string `json:"accessor_id,omitempty"`
	Method   string `json:"auth_method,omitempty"`
	// Node and Service are a service's; Node alone is a node's.
	Node    string `json:"node,omitempty"`
	Service string `json:"service_id,omitempty"`
	Tenancy
	// Reason is the kind of evidence, Evidence the proof that the task has ended.
	Reason   Reason `json:"reason"`
	Evidence string `json:"evidence"`
}

// Reason is the kind of evidence.
type Reason string

// The reasons, as they are counted and printed.
const (
	// ReasonStopped: ECS shows the task as STOPPED.
	ReasonStopped Reason = "stopped"
	// ReasonMissing: ECS has not known the task for long enough.
	ReasonMissing Reason = "missing"
)

// The kinds of items.
const (
	KindToken   = "token"
	KindService = "service"
	KindNode    = "node"
)

// RetainedTask is a task that ECS does not list as running and whose leftovers stay.
type RetainedTask struct {
	Task   string     `json:"task_id"`
	Reason KeepReason `json:"reason"`
	Detail string     `json:"detail,omitempty"`
	// Tokens and Services are how many it has.
	Tokens   int `json:"tokens"`
	Services int `json:"services"`
	// Again is how long after this pass another look may decide, 0 for unknown.
	Again time.Duration `json:"-"`
}

// Plan is what a pass has decided.
type Plan struct {
	// Delete is what goes, services before tokens.
	Delete []Item `json:"delete"`
	// Kept are sorted by task.
	Kept []RetainedTask `json:"kept"`
	// At is when it was decided, on the Cleaner's clock.
	At time.Duration `json:"-"`
}

// taskEvidence is the observations about one task with leftovers.
type taskEvidence struct {
	tokens, services int
	youngest         time.Time // of its tokens
	sure             bool      // something names our cluster by its ARN
}

// decide returns what is proven to be a dead task's. now, when all was read, is on a
// monotonic clock; before is not changed. The time between two looks is that from the
// end of the first to the start of the second: a pass may take minutes.
func decide(s *snapshot, before memory, now time.Duration, l limits) (Plan, memory) {
	after := memory{missing: map[string]time.Duration{}, ours: map[string]struct{}{}}
	if s.Partial {
		maps.Copy(after.ours, before.ours)
	}
	after.watch(before, s.ConsulTime, s.ConsulAt, l)
	consul := s.ConsulTime
	if s.ConsulAt < after.trusted {
		consul = time.Time{}
	}
	plan := Plan{Kept: []RetainedTask{}, At: now}
	evidence := map[string]string{}
	tasks, running := evidenceOf(s)
	maps.Copy(after.ours, running)
	for _, id := range slices.Sorted(maps.Keys(tasks)) {
		f, observed := tasks[id], s.Observations[id]
		_, ours := before.ours[id]
		if ours = ours || f.sure; ours || known(observed) {
			after.ours[id] = struct{}{}
		}
		since, missing := now, time.Duration(0)
		if first, ok := before.missing[id]; ok {
			since, missing = first, s.AskedAt-first
		}
		if observed.Last == awsutil.TaskMissing {
			after.missing[id] = since
		}
		proof, kept := proofOfEnd(observed, f, consul, missing, ours, l)
		if proof != "" {
			evidence[id] = proof
			continue
		}
		kept.Task, kept.Tokens, kept.Services = id, f.tokens, f.services
		plan.Kept = append(plan.Kept, kept)
	}
	plan.Delete = s.items(evidence)
	return plan, after
}

// known reports whether ECS has shown the task.
func known(s observation) bool { return s.Last != "" && s.Last != awsutil.TaskMissing }

// proofOfEnd returns the evidence that a task has ended, or why its leftovers stay. consul
// is zero if its clock is not trusted; missing is for how long the task has been.
func proofOfEnd(
	s observation, f *taskEvidence, consul time.Time, missing time.Duration, ours bool, l limits,
) (string, RetainedTask) {
	switch {
	case s.Last == "":
		return "", RetainedTask{Reason: KeepUnknown, Detail: s.Detail}
	case s.Last == awsutil.TaskStopped:
		return "ECS shows the task as STOPPED" + s.Detail, RetainedTask{}
	case s.Last != awsutil.TaskMissing && s.Desired == awsutil.TaskStopped:
		return "", RetainedTask{Reason: KeepStopping, Detail: "last status " + s.Last}
	case s.Last != awsutil.TaskMissing:
		return "", RetainedTask{Reason: KeepRunning, Detail: "last status " + s.Last}
	case !ours:
		return "", RetainedTask{Reason: KeepMissingAmbiguous}
	}
	age, since := missing, "first missing"
	// A token from the distant future was made when Consul's clock was wrong.
	if !f.youngest.IsZero() && !consul.IsZero() && consul.Sub(f.youngest) > -l.grace {
		age, since = consul.Sub(f.youngest), "newest token created"
	}
	switch {
	case age < l.grace:
		return "", RetainedTask{Reason: KeepMissingYoung,
			Detail: fmt.Sprintf("%s %s ago, minimum %s", since, roundSeconds(age), l.grace),
			Again:  max(l.grace-age, l.minAbsence-missing)}
	case missing < l.minAbsence:
		return "", RetainedTask{Reason: KeepMissingRecheck,
			Detail: fmt.Sprintf("missing for %s, minimum %s", roundSeconds(missing), l.minAbsence),
			Again:  l.minAbsence - missing}
	}
	return fmt.Sprintf("ECS reported the task MISSING in every check for %s; %s %s ago%s",
		roundSeconds(missing), since, roundSeconds(age), s.Detail), RetainedTask{}
}

// roundSeconds rounds a duration for texts.
func roundSeconds(d time.Duration) time.Duration { return d.Round(time.Second) }

// evidenceOf returns what a snapshot has of each task that is not running, and the running
// tasks whose leftovers will not name our cluster by its ARN.
func evidenceOf(s *snapshot) (tasks map[string]*taskEvidence, running map[string]struct{}) {
	tasks, running = map[string]*taskEvidence{}, map[string]struct{}{}
	of := func(id string, sure bool) *taskEvidence {
		if _, ok := s.Running[id]; ok {
			if !sure {
				running[id] = struct{}{}
			}
			return &taskEvidence{}
		}
		if tasks[id] == nil {
			tasks[id] = &taskEvidence{}
		}
		tasks[id].sure = tasks[id].sure || sure
		return tasks[id]
	}
	for _, t := range s.Tokens {
		f := of(t.Task, t.Sure)
		f.tokens++
		if t.Created.After(f.youngest) {
			f.youngest = t.Created
		}
	}
	for _, v := range s.Services {
		of(v.Task, v.Sure).services++
	}
	return tasks, running
}

// reason returns the kind of evidence that there is of a dead task.
func (s *snapshot) reason(task string) Reason {
	if s.Observations[task].Last == awsutil.TaskStopped {
		return ReasonStopped
	}
	return ReasonMissing
}

// items returns the leftovers of the tasks for which there is evidence, services
// first: a token is what an agent would need to write its service again.
func (s *snapshot) items(evidence map[string]string) []Item {
	services, tokens := []Item{}, []Item{}
	for _, v := range s.Services {
		if proof, ok := evidence[v.Task]; ok {
			services = append(services,
				Item{Kind: KindService, Task: v.Task, Node: v.Node, Service: v.ID, Tenancy: v.Tenancy,
					Reason: s.reason(v.Task), Evidence: proof})
		}
	}
	for _, t := range s.Tokens {
		if proof, ok := evidence[t.Task]; ok {
			tokens = append(tokens,
				Item{Kind: KindToken, Task: t.Task, Accessor: t.Accessor, Method: t.Method, Tenancy: t.Tenancy,
					Reason: s.reason(t.Task), Evidence: proof})
		}
	}
	for _, items := range [][]Item{services, tokens} {
		slices.SortFunc(items, func(a, b Item) int {
			return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Service, b.Service),
				cmp.Compare(a.Accessor, b.Accessor))
		})
	}
	return append(services, tokens...)
}

package controller

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

var (
	modelSeed  = flag.Uint64("seed", 0, "replay one schedule of TestModel")
	modelSeeds = flag.Int("seeds", 0,
		"how many schedules TestModel runs; 0 is as many as fit into its time, 10000 at most")
)

// modelSeconds is how long TestModel may take, and modelMost how many schedules it runs.
const (
	modelSeconds = 15
	modelMost    = 10000
	// modelInterval is the time between two passes.
	modelInterval = 10 * time.Second
	// vanishing is for how long ECS may not know a task that it has shown before.
	vanishing = 50 * time.Second
)

// TestModel runs random schedules of tasks that start, log in, lose their tags,
// drain, stop, are killed and forgotten, of AWS answers that fail, throttle, take
// long, are late or partial, of Consul that fails, of clocks that jump, and of controllers
// that crash, pause and follow each other. A simple model knows who lives. No live
// task may lose anything, nothing of others may change, and what a dead task left
// is gone within the bound. A failing seed replays: go test -run TestModel -seed N.
func TestModel(t *testing.T) {
	t.Parallel()
	if *modelSeed != 0 {
		runModel(t, *modelSeed, true)
		return
	}
	most := modelMost
	if *modelSeeds > 0 {
		most = *modelSeeds
	}
	var mu sync.Mutex
	start, next, sums := time.Now(), 0, map[string]int{}
	lacking := func() (what []string) {
		for _, w := range []string{"token", "service", "node", "stopped", "forgotten"} {
			if sums[w] == 0 {
				what = append(what, w)
			}
		}
		return what
	}
	limit := time.Duration(testkit.Share(modelSeconds)) * time.Second
	// On a busy machine too few schedules may fit into the time to show it all.
	late := func() bool {
		took := time.Since(start)
		return took > limit && (len(lacking()) == 0 || took > limit+testkit.Patience)
	}
	take := func() (seed uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= most || t.Failed() {
			return 0, false
		}
		if *modelSeeds == 0 && late() {
			return 0, false
		}
		next++
		return uint64(next), true
	}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed, ok := take(); ok; seed, ok = take() {
				counts := runModel(t, seed, false)
				mu.Lock()
				for what, n := range counts {
					sums[what] += n
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	t.Logf("%d schedules in %s: %v", next, time.Since(start).Round(time.Second/10), sums)
	if what := lacking(); len(what) > 0 {
		t.Errorf("no %s in all schedules: the model proves nothing of it", strings.Join(what, ", "))
	}
}

// model is one schedule.
type model struct {
	t       *testing.T
	seed    uint64
	verbose bool
	random  *rand.Rand
	consul  *fakeConsul
	ecs     *modelECS
	cleaner *Cleaner
	owners  map[string]*modelTask // by what may be deleted
	others  map[string]bool       // of no task of the cluster
	counts  map[string]int
	held    []heldPlan
	former  *Cleaner // a leader of before, who may lead again
	// calm is since when nothing has gone wrong.
	calm time.Time
	// long reports whether ECS may be late by minutes in this schedule; then clocks
	// agree. Otherwise they jump.
	long bool
	// ended means that no controller crashes or pauses any more.
	ended bool
}

// heldPlan is a plan of a controller that is paused, and may be deposed.
type heldPlan struct {
	cleaner *Cleaner
	report  Report
}

func runModel(t *testing.T, seed uint64, verbose bool) (counts map[string]int) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{
			t: t, seed: seed, verbose: verbose, random: rand.New(rand.NewPCG(seed, 20)), consul: newFakeConsul(),
			owners: map[string]*modelTask{}, others: map[string]bool{}, counts: map[string]int{}, calm: time.Now(),
		}
		m.long = m.chance(0.5)
		m.ecs = &modelECS{m: m}
		m.consul.deleted = m.judge
		m.newController()
		m.populate()
		for range 60 {
			m.act()
			m.wait(time.Duration(m.random.IntN(15000)) * time.Millisecond)
		}
		m.end()
		counts = m.counts
	})
	return counts
}

func (m *model) chance(p float64) bool { return m.random.Float64() < p }

func (m *model) note(format string, args ...any) {
	if m.verbose {
		m.t.Logf("%s "+format, append([]any{time.Now().Format("15:04:05.000")}, args...)...)
	}
}

func (m *model) violated(format string, args ...any) {
	m.t.Errorf("seed %d: "+format+"; replay: go test -run TestModel -seed %d",
		append(append([]any{m.seed}, args...), m.seed)...)
}

// wait lets virtual time pass, with a pass of the leader at each interval.
func (m *model) wait(d time.Duration) {
	for end := time.Now().Add(d); ; {
		next := time.Now().Truncate(modelInterval).Add(modelInterval)
		if next.After(end) {
			<-time.After(time.Until(end))
			return
		}
		<-time.After(time.Until(next))
		m.pass()
	}
}

func (m *model) newController() {
	m.cleaner = inMemory(m.t, m.consul, m.ecs)
}

// changeLeader lets another controller lead: a new one, or one that led before.
func (m *model) changeLeader() {
	m.fault("leader")
	next := m.former
	m.former = m.cleaner
	if next == nil || m.chance(0.3) {
		m.newController()
		return
	}
	m.cleaner = next
	m.cleaner.Forget()
}

// populate makes what is not ours and must not change.
func (m *model) populate() {
	other := func(key string) { m.others[key] = true }
	other(m.consul.login("", "kept by an operator"))
	other(m.consul.login("kubernetes", loginText(m.id(), clusterARN)))
	other(m.consul.login("iam-ecs-service-token", loginText(m.id(), clusterARN+"-2")))
	other(m.consul.login("iam-ecs-service-token", loginText(m.id(), "shop"))) // a cluster of the same name
	other(m.consul.login("iam-ecs-service-token", "token created via login: {"))
	meta := map[string]string{"source": "consul-ecs", "task-arn": shop(m.t).TaskARN(m.id())}
	for _, s := range []struct {
		id   string
		meta map[string]string
	}{{"dns", nil}, {"spoof", meta}} {
		m.consul.register("shared", s.id, s.id, s.meta)
		other("shared " + s.id)
	}
	other("shared")
	m.consul.nodes["shared"] = "critical"
}

func (m *model) id() string { return fmt.Sprintf("%016x%016x", m.random.Uint64(), m.random.Uint64()) }

func loginText(task, cluster string) string {
	return `token created via login: {"consul.hashicorp.com/cluster":"` + cluster +
		`","consul.hashicorp.com/task-id":"` + task + `"}`
}

// judge checks each deletion, before it is made.
func (m *model) judge(kind, id string) {
	m.note("deleted %s %s", kind, id)
	m.counts[kind]++
	task := m.owners[id]
	switch {
	case m.others[id]:
		m.violated("%s %s of another owner was deleted", kind, id)
	case task == nil:
		m.violated("%s %s without a task was deleted", kind, id)
	case task.live():
		m.violated("%s %s of live task %s was deleted, at %s", kind, id, task.id, time.Now())
	}
}

// pass runs one pass of the leader, in which its process may pause or crash.
func (m *model) pass() {
	ctx, crash := context.WithCancel(m.t.Context())
	defer crash()
	r, err := m.cleaner.Look(ctx)
	m.note("look: %d to delete, %v, %v", len(r.Delete), r.Kept, err)
	switch {
	case m.ended: // by end
	case m.chance(0.02): // it pauses between look and deed; another takes over
		m.fault("pause")
		m.held = append(m.held, heldPlan{m.cleaner, r})
		m.newController()
		return
	case m.chance(0.02): // it dies in the middle of the deed
		m.fault("crash")
		left := m.random.IntN(3)
		m.consul.fail = func(r *http.Request) bool {
			if left--; left < 0 && r.Method != http.MethodGet {
				crash()
				return true
			}
			return false
		}
		m.cleaner.Apply(ctx, &r)
		m.consul.fail = nil
		m.newController()
		return
	}
	if err := m.cleaner.Apply(ctx, &r); err != nil {
		m.note("apply: %v", err)
	}
	m.check()
}

// fault notes that something has gone wrong: the bound counts anew.
func (m *model) fault(what string) {
	m.note("%s", what)
	m.counts[what]++
	m.calm = time.Now()
}

// check holds what is left against the bound.
func (m *model) check() {
	if faulty := m.ecs.errors > 0 || m.ecs.slow > 0; faulty || m.consul.fail != nil {
		m.calm = time.Now()
		return
	}
	known, forgotten := bound(defaultLimits(), modelInterval, 0)
	for id, task := range m.owners {
		since, bound := task.ended, known
		if task.forgotten() {
			since, bound = task.forgets, forgotten
		}
		switch {
		case task.live() || !m.left(id):
			continue
		case task.forgotten() && (task.ec2 || m.consul.now().Sub(task.newest) < defaultLimits().grace):
			continue // as documented: its owner is unknown, or by the clock it is new
		}
		for _, fault := range []time.Time{m.calm, task.vanishes.Add(vanishing)} {
			if fault.After(since) {
				since = fault
			}
		}
		if late := time.Since(since); late > bound+task.lag {
			m.violated("%s of task %s is left %s after its end, the bound is %s", id, task.id, late, bound+task.lag)
		}
	}
}

func (m *model) left(id string) bool {
	_, token := m.consul.tokens[id]
	_, service := m.consul.services[id]
	return token || service
}

// end lets all come to rest: then everything of the dead is gone.
func (m *model) end() {
	m.ecs.errors, m.ecs.slow, m.consul.fail, m.ended = 0, 0, nil, true
	m.fault("end")
	if m.consul.offset != 0 {
		m.consul.offset = 0
		m.wait(10 * time.Minute) // tokens of the future come of age
	}
	_, forgotten := bound(defaultLimits(), modelInterval, 0)
	m.wait(forgotten + m.ecs.latest())
	before := m.consul.writes
	m.wait(modelInterval)
	if m.consul.writes != before {
		m.violated("a steady pass wrote")
	}
	for _, h := range m.held {
		h.cleaner.Apply(m.t.Context(), &h.report)
	}
	for id := range m.others {
		if _, node := m.consul.nodes[id]; !node && !m.left(id) {
			m.violated("%s of another owner was deleted", id)
		}
	}
}

// act takes one step of a schedule.
func (m *model) act() {
	task := m.anyTask()
	switch n := m.random.IntN(100); {
	case n < 25:
		m.start()
	case n < 45:
		task.login(m)
	case n < 50:
		task.tagged = false
	case n < 57:
		task.drain(m)
	case n < 72:
		task.end(m)
	case n < 77: // at most once: AWS is late, it does not lie again and again
		task.vanish(m)
	case n < 82:
		m.ecs.errors, m.ecs.slow = m.random.IntN(3), time.Duration(m.random.IntN(2)*m.random.IntN(120))*time.Second
		m.fault("aws")
	case n < 86:
		p := m.random.Float64() / 4
		m.consul.fail = func(*http.Request) bool { return m.chance(p) }
		m.fault("consul")
	case n < 91:
		m.ecs.errors, m.ecs.slow, m.consul.fail = 0, 0, nil
		m.fault("mended")
	case n < 94:
		m.changeLeader()
	case n < 97 && len(m.held) > 0: // the old leader wakes up
		h := m.held[0]
		m.held = m.held[1:]
		m.note("the old leader continues")
		h.cleaner.Apply(m.t.Context(), &h.report)
	case !m.long:
		m.consul.offset = time.Duration(m.random.IntN(1200)-600) * time.Second
		m.fault("clock")
	}
}

func (m *model) anyTask() *modelTask {
	if len(m.ecs.tasks) == 0 {
		m.start()
	}
	return m.ecs.tasks[m.random.IntN(len(m.ecs.tasks))]
}

// start starts a task that ECS shows after a while.
func (m *model) start() {
	lag := time.Duration(m.random.IntN(40)) * time.Second
	if m.long {
		lag = time.Duration(m.random.IntN(240)) * time.Second
	}
	task := &modelTask{id: m.id(), created: time.Now(), lag: lag, tagged: m.chance(0.9), ec2: m.chance(0.2),
		consul: m.consul}
	m.note("task %s starts, late by %s", task.id, lag)
	m.ecs.tasks = append(m.ecs.tasks, task)
	task.login(m)
}

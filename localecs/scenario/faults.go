package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// faultInjector makes the faults of a scenario.
type faultInjector struct {
	file     *file.Scenario
	tasks    *TaskSet
	cluster  *cluster.Cluster
	server   consulServer
	progress *progress
	schedule *Schedule
}

// changed reports that a fault has started or is over. err is why it has not: a
// fault that could not start is a failure, since what follows proves nothing then.
func (i *faultInjector) changed(f chaos.Fault, over bool, err error) {
	if err != nil && !(i.file.Checks.FaultsMayMiss && errors.Is(err, errMissed)) {
		i.progress.fail("fault at %s: %s: %v", f.At, f, err)
	}
	e := Event{Kind: KindFault, Detail: f.String(), Text: f.String()}
	switch {
	case over:
		e.Kind, e.Text = KindFaultOver, "over: "+e.Text
	case f.For > 0 && err == nil:
		e.Text += fmt.Sprintf(" for %s", f.For)
	}
	if tasks := f.Tasks(); len(tasks) > 0 {
		e.Task = tasks[0]
	}
	if err != nil {
		e.Error = err.Error()
		e.Text += ": " + e.Error
	}
	i.progress.emit(e)
}

// errMissed means that a fault came too early or too late: its task, container or
// program does not exist.
var errMissed = errors.New("the target of the fault does not exist")

// consulServer is the Consul server as faults act on it, such as cluster.Running.
type consulServer interface {
	Down() (up func() error, err error)
	Freeze() (end func() error, err error)
	Slow() (end func() error, err error)
}

// begin starts a fault. end is nil for a momentary one.
func (i *faultInjector) begin(f chaos.Fault) (end func() error, err error) {
	i.expectEffects(f)
	switch {
	case f.Endpoint != nil:
		over := i.cluster.Disturb(*f.Endpoint, i.file.Seed)
		return func() error { over(); return nil }, nil
	case f.Server == chaos.Down:
		return i.server.Down()
	case f.Server == chaos.Frozen:
		return i.server.Freeze()
	case f.Server == chaos.Slowed:
		return i.server.Slow()
	}
	return i.beginOfTask(f)
}

// expectEffects records what a fault may cause: that a container has to be killed, and
// that ECS ends a task.
func (i *faultInjector) expectEffects(f chaos.Fault) {
	if f.Spot != nil {
		i.tasks.mayEnd(f.Spot.Task)
	}
	if p := f.Process(); p != nil && f.Slow == nil { // slow processes still stop in time
		i.tasks.mayKill(p.Task, p.Container)
	}
}

func (i *faultInjector) beginOfTask(f chaos.Fault) (end func() error, err error) {
	name := f.Tasks()[0]
	t := i.tasks.clusterTask(name)
	if t == nil {
		return nil, fmt.Errorf("%w: task %s has not started", errMissed, name)
	}
	switch {
	case f.Partition != nil:
		end, err = i.partition(t, f.Partition.From)
	case f.Link != nil:
		end, err = t.Limit(f.Link.KBits)
	default:
		end, err = processes(t, f)
	}
	// Processes come and go; a network lasts as long as its task.
	if err != nil && (t.View().KnownStatus == scheduler.StatusStopped || f.Partition == nil && f.Link == nil) {
		err = fmt.Errorf("%w: %w", errMissed, err)
	}
	return end, err
}

// processes starts a fault of processes. They may not exist.
func processes(t *cluster.Task, f chaos.Fault) (end func() error, err error) {
	switch {
	case f.Kill != nil:
		return nil, kill(t, *f.Kill)
	case f.OOM != nil:
		return nil, t.OOM(f.OOM.Container)
	case f.Freeze != nil:
		return t.Freeze(f.Freeze.Container, f.Freeze.Process)
	case f.Slow != nil:
		return t.Slow(f.Slow.Container, f.Slow.Process)
	case f.Spot != nil:
		return nil, t.Interrupt()
	}
	return nil, fmt.Errorf("no action causes the fault: %s", f)
}

// kill sends a signal into a task. Without a container it ends the task as the
// failure of its machine does.
func kill(t *cluster.Task, k chaos.Kill) error {
	if k.Container == "" {
		t.KillAll()
		return nil
	}
	return t.Kill(k.Container, k.Process, signalOf(k))
}

// signalOf returns the signal of a kill that was validated.
func signalOf(k chaos.Kill) syscall.Signal {
	signal, _ := runtime.ParseSignal(cmp.Or(k.Signal, "KILL"))
	return signal
}

func (i *faultInjector) partition(t *cluster.Task, from string) (end func() error, err error) {
	switch from {
	case chaos.Server:
		return i.cluster.PartitionFromServices(t)
	case chaos.All:
		return i.cluster.PartitionFromAll(t)
	}
	other := i.tasks.clusterTask(from)
	if other == nil {
		return nil, fmt.Errorf("%w: task %s has not started", errMissed, from)
	}
	return i.cluster.Partition(t, other)
}

// Schedule carries out faults.
type Schedule struct {
	begin func(chaos.Fault) (end func() error, err error)
	emit  func(f chaos.Fault, over bool, err error)
	stop  chan struct{}
	once  sync.Once
	work  sync.WaitGroup

	mu    sync.Mutex
	open  int // faults that have not started, or will end
	never []chaos.Fault
	now   []chaos.Fault // that last, in the order of their beginning
	made  int
}

// NewSchedule returns a schedule without faults. begin starts one and returns its end,
// nil for a momentary one; emit is called for both, concurrently.
func NewSchedule(begin func(chaos.Fault) (end func() error, err error),
	emit func(f chaos.Fault, over bool, err error)) *Schedule {
	return &Schedule{begin: begin, emit: emit, stop: make(chan struct{})}
}

// Add schedules faults: their times count from now on. It must not follow End.
func (s *Schedule) Add(faults []chaos.Fault) {
	now := time.Now()
	ordered := slices.SortedStableFunc(slices.Values(faults), func(a, b chaos.Fault) int {
		return cmp.Compare(a.At, b.At)
	})
	s.count(len(ordered))
	s.work.Go(func() { s.carryOut(now, ordered) })
}

// Open returns how many faults have not started yet, or will end before the run does.
func (s *Schedule) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Now returns the present lasting faults, and how many faults have started so far. A
// nil Schedule has none.
func (s *Schedule) Now() (now []chaos.Fault, made int) {
	if s == nil {
		return nil, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.now), s.made
}

// End ends every fault, and returns when all are over, with those whose time had
// not come: they never start. It may be called again.
func (s *Schedule) End() (never []chaos.Fault) {
	s.once.Do(func() { close(s.stop) })
	s.work.Wait()
	return s.never
}

func (s *Schedule) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += n
}

// carryOut begins faults that are in the order of their times.
func (s *Schedule) carryOut(start time.Time, faults []chaos.Fault) {
	for i, f := range faults {
		if !s.sleep(start.Add(f.At)) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.never = append(s.never, faults[i:]...)
			return
		}
		end, err := s.begin(f)
		s.recordStart(f, err, end != nil)
		s.emit(f, false, err)
		switch {
		case err != nil || end == nil:
			s.count(-1)
		case f.For == 0:
			s.count(-1)
			s.work.Go(func() { s.last(f, end, nil) })
		default:
			s.work.Go(func() { s.last(f, end, time.After(f.For)); s.count(-1) })
		}
	}
}

// recordStart records a fault that has started, unless with an error.
func (s *Schedule) recordStart(f chaos.Fault, err error, lasts bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.made++
	}
	if err == nil && lasts {
		s.now = append(s.now, f)
	}
}

// sleep waits until then, or is false when all are to end.
func (s *Schedule) sleep(then time.Time) bool {
	select {
	case <-time.After(time.Until(then)):
	case <-s.stop:
	}
	select {
	case <-s.stop:
		return false
	default:
		return true
	}
}

// last ends a fault when it is due, or all are to end.
func (s *Schedule) last(f chaos.Fault, end func() error, due <-chan time.Time) {
	select {
	case <-due:
	case <-s.stop:
	}
	err := end()
	s.mu.Lock()
	if i := slices.Index(s.now, f); i >= 0 {
		s.now = slices.Delete(s.now, i, i+1)
	}
	s.mu.Unlock()
	s.emit(f, true, err)
}

package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/chaos"
)

// Event tells that a fault has begun, or is over.
type FaultEvent struct {
	Fault chaos.Fault
	Over  bool
	// Err is why it did not begin, or not end.
	Err error
}

// Told is the event for who follows the run.
func (e FaultEvent) Told() Event {
	told := Event{Kind: KindFault, Detail: e.Fault.String(), Text: e.Fault.String()}
	switch {
	case e.Over:
		told.Kind, told.Text = KindFaultOver, "over: "+told.Text
	case e.Fault.For > 0 && e.Err == nil:
		told.Text += fmt.Sprintf(" for %s", e.Fault.For)
	}
	if tasks := e.Fault.Tasks(); len(tasks) > 0 {
		told.Task = tasks[0]
	}
	if e.Err != nil {
		told.Error = e.Err.Error()
		told.Text += ": " + told.Error
	}
	return told
}

// Schedule carries out faults.
type Schedule struct {
	begin func(chaos.Fault) (end func() error, err error)
	tell  func(FaultEvent)
	stop  chan struct{}
	once  sync.Once
	work  sync.WaitGroup

	mu    sync.Mutex
	open  int // that have not begun, or have an end which has not come
	never []chaos.Fault
	now   []chaos.Fault // that last, in the order of their beginning
	made  int
}

// New makes a schedule without faults. begin makes one begin and says how it
// ends, nil when it is over in a moment; tell is told of both, by several
// goroutines.
func NewSchedule(begin func(chaos.Fault) (end func() error, err error), tell func(FaultEvent)) *Schedule {
	return &Schedule{begin: begin, tell: tell, stop: make(chan struct{})}
}

// Add counts the times of faults from now on. It must not come after End.
func (s *Schedule) Add(faults []chaos.Fault) {
	now := time.Now()
	ordered := slices.SortedStableFunc(slices.Values(faults), func(a, b chaos.Fault) int { return cmp.Compare(a.At, b.At) })
	s.count(len(ordered))
	s.work.Go(func() { s.carryOut(now, ordered) })
}

// Open is how many faults have not begun yet, or have an end of their own that
// has not come. One that lasts for the rest of the run has none.
func (s *Schedule) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Now are the lasting faults that there are now, and made is how many have begun
// so far. A nil Schedule has none.
func (s *Schedule) Now() (now []chaos.Fault, made int) {
	if s == nil {
		return nil, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.now), s.made
}

// End ends every fault, and returns when all are over, with those whose time had
// not come: they never begin. It may be called again.
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
		s.note(f, err, end != nil)
		s.tell(FaultEvent{Fault: f, Err: err})
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

// note notes a fault that has begun, unless with an error.
func (s *Schedule) note(f chaos.Fault, err error, lasts bool) {
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
	s.tell(FaultEvent{Fault: f, Over: true, Err: err})
}

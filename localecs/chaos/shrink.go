package chaos

import (
	"slices"
	"time"
)

// Shrink looks for a shorter schedule that still fails, by running at most so
// many: first without halves, quarters and so on of its events, then with shorter
// faults, then with an earlier beginning. fails runs one; a schedule that fails
// only sometimes may stay longer than it has to be.
func Shrink(s Schedule, w Topology, budget int, fails func(Schedule) bool) Schedule {
	k := &shrinker{topology: w, budget: budget, fails: fails, best: s}
	k.drop()
	k.shorten()
	k.advance()
	return k.best
}

type shrinker struct {
	topology Topology
	budget   int
	fails    func(Schedule) bool
	best     Schedule
}

// try keeps a schedule when it is possible and fails.
func (k *shrinker) try(s Schedule) bool {
	if k.budget <= 0 || !s.sound(k.topology) {
		return false
	}
	k.budget--
	if !k.fails(s) {
		return false
	}
	k.best = s
	return true
}

// drop leaves events out: parts of all, ever smaller ones.
func (k *shrinker) drop() {
	for parts := 2; len(k.best.Events) > 1; {
		size := (len(k.best.Events) + parts - 1) / parts
		dropped := false
		for from := 0; from < len(k.best.Events) && !dropped; from += size {
			to := min(from+size, len(k.best.Events))
			less := k.best
			less.Events = slices.Delete(slices.Clone(less.Events), from, to)
			dropped = k.try(less)
		}
		switch {
		case k.budget <= 0 || !dropped && size == 1:
			return
		case dropped:
			parts = max(parts-1, 2)
		default:
			parts = min(2*parts, len(k.best.Events))
		}
	}
}

// shorten halves faults as long as it fails.
func (k *shrinker) shorten() {
	for i := range k.best.Events {
		for k.best.Events[i].For >= 2*time.Second {
			less := k.best
			less.Events = slices.Clone(less.Events)
			less.Events[i].For = (less.Events[i].For / 2).Truncate(100 * time.Millisecond)
			if !k.try(less) {
				break
			}
		}
	}
}

// advance takes the quiet time before the first event and after the last away.
func (k *shrinker) advance() {
	if len(k.best.Events) == 0 {
		return
	}
	earlier := k.best
	earlier.Events = slices.Clone(earlier.Events)
	by := earlier.Events[0].At - time.Second
	end := time.Duration(0)
	for i := range earlier.Events {
		if by > 0 {
			earlier.Events[i].At -= by
		}
		end = max(end, earlier.Events[i].End())
	}
	earlier.For = min(earlier.For, end+5*time.Second)
	if earlier.For < k.best.For {
		k.try(earlier)
	}
}

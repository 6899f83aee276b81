package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A gap is cut when it is longer than minGap seconds and than gapShare of the time that
// is not cut; cuts take at most cutShare of the room.
const (
	minGap   = 10.0
	gapShare = 0.2
	cutShare = 0.4
)

// Axis maps times to places on a line from left to right, in the unit of its width.
type Axis struct {
	from, to float64
	pieces   []piece
}

// piece is a part of the time and its part of the room.
type piece struct {
	from, to, x, width float64
	cut                bool
}

// Cut is a part of the time that has less room than the others.
type Cut struct{ X, Width, Seconds float64 }

// Tick is a mark with its text.
type Tick struct {
	X     float64
	Label string
}

// NewAxis returns an axis of that width for the seconds between from and to. Long times
// without any of the points become cuts, which are cutWidth wide.
func NewAxis(from, to float64, points []float64, width, cutWidth float64) Axis {
	to = max(to, from+0.01)
	a := Axis{from: from, to: to}
	for _, gap := range gaps(from, to, points, int(width*cutShare/cutWidth)) {
		a.pieces = append(a.pieces, piece{from: from, to: gap.from}, piece{from: gap.from, to: gap.to, cut: true})
		from = gap.to
	}
	a.pieces = append(a.pieces, piece{from: from, to: to})
	uncut, room := 0.0, width
	for _, p := range a.pieces {
		if p.cut {
			room -= cutWidth
		} else {
			uncut += p.to - p.from
		}
	}
	x := 0.0
	for i := range a.pieces {
		p := &a.pieces[i]
		p.x, p.width = x, cutWidth
		if !p.cut {
			p.width = room * (p.to - p.from) / uncut
		}
		x += p.width
	}
	return a
}

// gaps returns the times to cut, at most so many, in their order.
func gaps(from, to float64, points []float64, most int) []piece {
	inside := []float64{from, to}
	for _, p := range points {
		if p > from && p < to {
			inside = append(inside, p)
		}
	}
	slices.Sort(inside)
	var all []piece
	for i := 1; i < len(inside); i++ {
		all = append(all, piece{from: inside[i-1], to: inside[i]})
	}
	slices.SortStableFunc(all, func(a, b piece) int { return cmp.Compare(b.to-b.from, a.to-a.from) })
	left := to - from
	var cuts []piece
	for _, g := range all {
		long := g.to - g.from
		if len(cuts) == most || long < max(minGap, gapShare*left) {
			break
		}
		margin := min(1, long/20) // what happens next to a cut should not touch it
		cuts = append(cuts, piece{from: g.from + margin, to: g.to - margin})
		left -= long - 2*margin
	}
	slices.SortFunc(cuts, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
	return cuts
}

// X returns the place of a moment, for one outside of the axis the end.
func (a Axis) X(at float64) float64 {
	at = min(max(at, a.from), a.to)
	for _, p := range a.pieces {
		if at <= p.to && p.to > p.from {
			return p.x + p.width*(at-p.from)/(p.to-p.from)
		}
	}
	last := a.pieces[len(a.pieces)-1]
	return last.x + last.width
}

// Has reports whether a moment is on the axis.
func (a Axis) Has(at float64) bool { return at >= a.from && at <= a.to }

// Cuts returns the cuts in the order of time.
func (a Axis) Cuts() []Cut {
	var cuts []Cut
	for _, p := range a.pieces {
		if p.cut {
			cuts = append(cuts, Cut{X: p.x, Width: p.width, Seconds: p.to - p.from})
		}
	}
	return cuts
}

// PerSecond returns the width of a second outside of cuts.
func (a Axis) PerSecond() float64 {
	for _, p := range a.pieces {
		if !p.cut && p.to > p.from {
			return p.width / (p.to - p.from)
		}
	}
	return 0
}

// Ticks returns ticks at round times since zero, at least so far apart.
func (a Axis) Ticks(zero, apart float64) []Tick {
	step := nice(apart / max(a.PerSecond(), 1e-9))
	var ticks []Tick
	for _, p := range a.pieces {
		if p.cut {
			continue
		}
		for n := math.Ceil((p.from - zero) / step); zero+n*step <= p.to+1e-9; n++ {
			x := a.X(zero + n*step)
			if last := len(ticks) - 1; last < 0 || x-ticks[last].X >= apart*0.99 {
				ticks = append(ticks, Tick{X: x, Label: label(n*step, step)})
			}
		}
	}
	return ticks
}

// nice returns the least round number of seconds that is no less.
func nice(least float64) float64 {
	for _, s := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 40, 60, 120, 300, 600, 900,
		1800, 3600} {
		if s >= least {
			return s
		}
	}
	return 3600 * math.Ceil(least/3600)
}

func label(seconds, step float64) string {
	switch {
	case math.Abs(seconds) < 1e-9:
		return "0"
	case step < 0.1:
		return fmt.Sprintf("%.2f s", seconds)
	case step < 1:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 120:
		return fmt.Sprintf("%.0f s", seconds)
	}
	return fmt.Sprintf("%d:%02d", int(seconds+0.5)/60, int(seconds+0.5)%60)
}

// SpanText formats a duration, the shorter the more exactly.
func SpanText(seconds float64) string {
	switch {
	case seconds <= -0.005:
		return "-" + SpanText(-seconds)
	case seconds < 0:
		return SpanText(0)
	case seconds < 9.995:
		return fmt.Sprintf("%.2f s", seconds)
	case seconds < 119.95:
		return fmt.Sprintf("%.1f s", seconds)
	}
	return fmt.Sprintf("%d min %02d s", int(seconds+0.5)/60, int(seconds+0.5)%60)
}

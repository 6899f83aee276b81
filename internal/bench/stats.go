package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// sample is the values of one measurement, in the unit of its row.
type sample []float64

func (s *sample) add(v float64) { *s = append(*s, v) }

// min, median and max are 0 for an empty sample.
func (s sample) min() float64 {
	if len(s) == 0 {
		return 0
	}
	return slices.Min(s)
}

func (s sample) max() float64 {
	if len(s) == 0 {
		return 0
	}
	return slices.Max(s)
}

// median returns the mean of the two in the middle when there is no middle.
func (s sample) median() float64 {
	n := len(s)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ratio returns a's median over b's, 0 when b's is not positive.
func ratio(a, b sample) float64 {
	if m := b.median(); m > 0 {
		return a.median() / m
	}
	return 0
}

// unit is what a row's values are in.
type unit string

const (
	milliseconds unit = "ms"
	seconds      unit = "s"
	megabytes    unit = "MB"
	percent      unit = "%"
	count        unit = "count"
	cpuPerMinute unit = "CPU s/min"
)

// of converts a duration.
func (u unit) of(d time.Duration) float64 {
	if u == milliseconds {
		return float64(d) / float64(time.Millisecond)
	}
	return d.Seconds()
}

// format prints a value with as many digits as it deserves.
func (u unit) format(v float64) string {
	digits := 1
	switch u {
	case percent:
		digits = 2
	case seconds, cpuPerMinute:
		digits = 3
	case count:
		digits = 0
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// spread returns n moments in [0, period), one in each n-th of it, in random
// order. Against a program that looks at the world periodically they are as
// random as n independent ones, and their median varies far less.
func spread(n int, period time.Duration) []time.Duration {
	out := make([]time.Duration, n)
	for i, slot := range rand.Perm(n) {
		out[i] = time.Duration((float64(slot) + rand.Float64()) / float64(n) * float64(period))
	}
	return out
}

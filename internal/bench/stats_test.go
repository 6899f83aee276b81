package main

import (
	"slices"
	"testing"
	"time"
)

func TestSample(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values           sample
		min, median, max float64
	}{
		"empty":            {nil, 0, 0, 0},
		"one":              {sample{3}, 3, 3, 3},
		"odd, not sorted":  {sample{9, 1, 4}, 1, 4, 9},
		"even, not sorted": {sample{8, 1, 2, 4}, 1, 3, 8},
		"below zero":       {sample{-5, -1}, -5, -3, -1},
	} {
		before := slices.Clone(c.values)
		got, want := [...]float64{
			c.values.min(), c.values.median(), c.values.max(),
		}, [...]float64{c.min, c.median, c.max}
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if !slices.Equal(before, c.values) {
			t.Errorf("%s: the order changed to %v", name, c.values)
		}
	}
}

func TestRatio(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ours, ref sample
		want      float64
	}{
		{sample{1, 3}, sample{4}, 0.5},
		{sample{3}, sample{0}, 0},
		{sample{3}, nil, 0},
	} {
		if got := ratio(c.ours, c.ref); got != c.want {
			t.Errorf("%v to %v is %v, want %v", c.ours, c.ref, got, c.want)
		}
	}
}

func TestUnit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unit   unit
		values sample
		want   string
	}{
		{milliseconds, sample{milliseconds.of(1500 * time.Microsecond)}, "1.5"},
		{seconds, sample{seconds.of(1500 * time.Millisecond), 3, 4}, "1.500 / 3.000 / 4.000"},
		{count, sample{5, 5, 5}, "5"},
		{megabytes, sample{10.17}, "10.2"},
		{percent, sample{0.004, 0.2}, "0.00 / 0.10 / 0.20"},
		{cpuPerMinute, sample{0.0376}, "0.038"},
		{seconds, nil, "not measured"},
	} {
		if got := c.unit.triple(c.values); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.values, c.unit, got, c.want)
		}
	}
}

func TestSpreadHasOneMomentInEachPart(t *testing.T) {
	t.Parallel()
	const n = 24
	moments := spread(n, time.Second)
	var parts [n]int
	for _, m := range moments {
		if m < 0 || m >= time.Second {
			t.Fatalf("%s is outside", m)
		}
		parts[int(m*n/time.Second)]++
	}
	for i, got := range parts {
		if got != 1 {
			t.Errorf("%d moments in part %d, want 1: %v", got, i, moments)
		}
	}
	if slices.IsSorted(moments) {
		t.Error("moments are sorted, want them shuffled")
	}
}

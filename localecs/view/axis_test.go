package view_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/view"
)

func TestTimeIsALineWhereItIsShort(t *testing.T) {
	t.Parallel()
	a := view.NewAxis(10, 20, []float64{11, 19}, 100, 10)
	for _, c := range []struct{ at, want float64 }{{5, 0}, {10, 0}, {12.5, 25}, {20, 100}, {30, 100}} {
		if got := a.X(c.at); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%g at %g, want %g", c.at, got, c.want)
		}
	}
	if a.Cuts() != nil {
		t.Errorf("cuts %v, %g a second", a.Cuts(), a.PerSecond())
	}
	testkit.Equal(t, "PerSecond()", a.PerSecond(), 10)
	if !a.Has(10) || a.Has(9.9) {
		t.Errorf("cuts %v, %g a second", a.Cuts(), a.PerSecond())
	}
	if a.Has(20.1) {
		t.Errorf("cuts %v, %g a second", a.Cuts(), a.PerSecond())
	}
}

func TestIdlePartsAreCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		to     float64
		points []float64
		want   []float64 // lengths
	}{
		{"short gaps", 30, []float64{5, 12, 19, 26}, nil},
		{"long, and no great part", 100, []float64{10, 20, 30, 40, 50, 60, 70, 80, 90}, nil},
		{"one", 60, []float64{1, 2, 58, 59}, []float64{54}},
		{"two", 600, []float64{1, 2, 300, 301, 599}, []float64{296, 296}},
		{"nothing happens at all", 600, nil, []float64{598}},
	} {
		a := view.NewAxis(0, c.to, c.points, 400, 20)
		var got []float64
		for _, cut := range a.Cuts() {
			got = append(got, math.Round(cut.Seconds*1e6)/1e6)
			if cut.Width != 20 {
				t.Errorf("%s: a cut is %g wide", c.name, cut.Width)
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: cuts (-want +got):\n%s", c.name, d)
		}
		last := -1.0
		for at := 0.0; at <= c.to; at += c.to / 1000 {
			if x := a.X(at); x < last || x > 400.000001 {
				t.Fatalf("%s: %g s is at %g, and what was before at %g", c.name, at, x, last)
			} else {
				last = x
			}
		}
	}
}

func TestTicksAreRoundAndSpaced(t *testing.T) {
	t.Parallel()
	labels := func(a view.Axis, zero float64) []string {
		var all []string
		last := math.Inf(-1)
		for _, tick := range a.Ticks(zero, 50) {
			if tick.X-last < 49 {
				t.Errorf("ticks at %g and %g", last, tick.X)
			}
			last = tick.X
			all = append(all, tick.Label)
		}
		return all
	}
	for _, c := range []struct {
		a    view.Axis
		zero float64
		want []string
	}{
		{view.NewAxis(0, 10, []float64{5}, 300, 20), 0, []string{"0", "2 s", "4 s", "6 s", "8 s", "10 s"}},
		{view.NewAxis(3.9, 5, []float64{4, 4.5}, 300, 20), 4,
			[]string{"0", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1.0 s"}},
		{view.NewAxis(0, 0.1, nil, 300, 20), 0, []string{"0", "0.02 s", "0.04 s", "0.06 s", "0.08 s", "0.10 s"}},
		{view.NewAxis(0, 300, []float64{50, 100, 150, 200, 250}, 300, 20), 0,
			[]string{"0", "60 s", "2:00", "3:00", "4:00", "5:00"}},
	} {
		if d := cmp.Diff(c.want, labels(c.a, c.zero)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

func TestSpanText(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{0: "0.00 s", 0.2149: "0.21 s", 9.999: "10.0 s", 12.34: "12.3 s",
		119.99: "2 min 00 s", 754: "12 min 34 s", -1.5: "-1.50 s", -0.0049: "0.00 s"} {
		if got := view.SpanText(seconds); got != want {
			t.Errorf("%g: %q, want %q", seconds, got, want)
		}
	}
}

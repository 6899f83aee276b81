package view_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// chance returns a run of tasks whose events come at any time, near to each other and far.
func chance(r *rand.Rand) view.RecordedRun {
	run := view.RecordedRun{
		Scenario: "chance", Started: time.Unix(1_800_000_000, 0), Outcome: view.Passed,
		Seconds: []float64{0.3, 5, 60, 900}[r.IntN(4)],
	}
	at := func() float64 {
		if r.IntN(3) == 0 { // near to the others
			return run.Seconds * (0.5 + r.Float64()/1000)
		}
		return run.Seconds * r.Float64()
	}
	for i := range 1 + r.IntN(3) {
		t := view.RecordedTask{Name: fmt.Sprintf("task-%d", i), ID: "0123", Application: "api"}
		add := func(kind view.Kind, container, status string) {
			t.Events = append(t.Events,
				view.RecordedEvent{At: at(), Kind: kind, Container: container, Status: status, Detail: "exit code 0"})
		}
		for _, c := range []string{"consul-client", "consul-ecs-mesh-init", "sidecar-proxy", "api"} {
			t.Containers = append(t.Containers, view.RecordedContainer{Name: c, HealthCheck: c == "api"})
			add(view.KindStatus, c, "RUNNING")
			add(view.KindHealth, c, "HEALTHY")
			add(view.KindSignal, c, "TERM")
			add(view.KindStatus, c, "STOPPED")
		}
		add(view.KindInTraffic, "", "in")
		add(view.KindInTraffic, "", "out")
		add(view.KindDesired, "", "STOPPED")
		add(view.KindStatus, "", "STOPPED")
		add(view.KindCleared, "", "")
		sortEvents(t.Events)
		run.Tasks = append(run.Tasks, t)
	}
	for range r.IntN(12) {
		from := at()
		run.Faults = append(run.Faults,
			view.RecordedStep{Text: "freeze sidecar-proxy", Task: "task-0", From: from,
				To: min(run.Seconds, from+at()/5)})
	}
	return run
}

// float reads a number of an element.
func float(t *testing.T, e element, name string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(e.attrs[name], 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Every moment has its line and its label, and no line crosses another's label: however
// near they are.
func TestMomentLabelsDoNotOverlap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		run := chance(rand.New(rand.NewPCG(seed, 1)))
		page := parse(t, html(t, run))
		lines, labels := map[int][]element{}, map[int][]element{}
		words := 0
		for _, e := range page {
			switch class := e.attrs["class"]; {
			case class == "moment":
				lines[e.svg] = append(lines[e.svg], e)
			case class == "momentlabel":
				labels[e.svg] = append(labels[e.svg], e)
			case e.name == "dt":
				words++
			}
		}
		drawn := 0
		for svg := range lines {
			drawn += len(lines[svg])
			if len(lines[svg]) != len(labels[svg]) {
				t.Errorf("seed %d, picture %d: %d moments, %d labels", seed, svg, len(lines[svg]), len(labels[svg]))
			}
			for _, line := range lines[svg] {
				x, top := float(t, line, "x1"), float(t, line, "y1")
				for _, label := range labels[svg] {
					from, y := float(t, label, "x"), float(t, label, "y")
					if to := from + 0.45*10*float64(len(label.text)); top < y-2 &&
						math.Abs(x-(from+to)/2) < (to-from)/2-1 {
						t.Errorf("seed %d, picture %d: a line at %g from %g on crosses %q at %g, %g", seed, svg, x, top,
							label.text, from, y)
					}
				}
			}
		}
		if drawn != words {
			t.Errorf("seed %d: %d moments are drawn, %d in words", seed, drawn, words)
		}
	}
}

// What is drawn stays on its sheet, and has some width.
func TestShapesStayWithinTheSheet(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		width, height := 0.0, 0.0
		for _, e := range parse(t, html(t, chance(rand.New(rand.NewPCG(seed, 2))))) {
			switch {
			case e.name == "svg" && e.attrs["role"] == "img":
				width, height = float(t, e, "width"), float(t, e, "height")
			case e.name == "rect" && e.attrs["class"] != "" && e.attrs["class"] != "none":
				x, y, w, h := float(t, e, "x"), float(t, e, "y"), float(t, e, "width"), float(t, e, "height")
				if x < 0 || y < 0 {
					t.Errorf("seed %d: %s of %gx%g at %g, %g on %gx%g", seed, e.attrs["class"], w, h, x, y, width,
						height)
				}
				if x+w > width+3 || y+h > height {
					t.Errorf("seed %d: %s of %gx%g at %g, %g on %gx%g", seed, e.attrs["class"], w, h, x, y, width,
						height)
				}
				if w < 1 || h <= 0 {
					t.Errorf("seed %d: %s of %gx%g at %g, %g on %gx%g", seed, e.attrs["class"], w, h, x, y, width,
						height)
				}
				bar := strings.HasPrefix(e.attrs["class"], "s ") && e.svg > 3
				if amongNames := x < 180 && width > 100; bar && amongNames {
					t.Errorf("seed %d: a bar at %g, among the names", seed, x)
				}
			}
		}
	}
}

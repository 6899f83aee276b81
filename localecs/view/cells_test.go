package view_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// drawn is a run's lines without the legend.
func drawn(t *testing.T, run view.RecordedRun, o view.SketchOptions) []string {
	t.Helper()
	var b bytes.Buffer
	if err := view.WriteSketch(&b, run, o); err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(b.String(), "\n\n  :")
	return strings.Split(text, "\n")
}

func event(at float64, kind, container, status string) view.RecordedEvent {
	return view.RecordedEvent{At: at, Kind: kind, Container: container, Status: status}
}

func TestEveryCellSaysWhatWas(t *testing.T) {
	t.Parallel()
	run := view.RecordedRun{
		Scenario: "cells", Begun: time.Unix(1_800_000_000, 0), Seconds: 32, Outcome: view.Failed,
		Steps:    []view.RecordedStep{{Text: "a", From: 0, To: 10}, {Text: "b", From: 10, To: 10.1}, {Text: "c", From: 10.1, To: 32}},
		Faults:   []view.RecordedStep{{Text: "freeze web", Task: "web", From: 8, To: 12}},
		Requests: view.RecordedRequests{BucketSeconds: 1, Answered: []int{0, 0, 4, 8, 8, 1}, Lost: []int{0, 0, 0, 1, 0, 0}, SlowestMS: make([]int, 6)},
		Tasks: []view.RecordedTask{{Name: "web", Application: "web", Containers: []view.RecordedContainer{{Name: "web", Essential: true, HealthCheck: true}}, Events: []view.RecordedEvent{
			event(0, "status", "web", "PULLED"), event(4, "status", "web", "RUNNING"), event(4, "status", "", "RUNNING"),
			event(8, "health", "web", "HEALTHY"), event(14, "health", "web", "UNHEALTHY"), event(18, "restart", "web", "1"),
			event(20, "health", "web", "HEALTHY"), event(24, "desired", "", "STOPPED"), event(24, "signal", "web", "TERM"),
			event(28, "signal", "web", "KILL"), {At: 30, Kind: "status", Container: "web", Status: "STOPPED", Detail: "exit code 137"}, event(30, "status", "", "STOPPED"),
		}}},
	}
	want := []string{
		"cells: FAILED, 32.0 s",
		"                          0         10 s      20 s",
		"                          +---------+---------+---------+-",
		"steps                     1---------3--------------------  3",
		"faults                            =====                    freeze web",
		"requests                    oXO.                           21 ok, 1 lost",
		"  web                     ::::::::######UxxxR:####T___K_E  stopped in 6.00 s",
	}
	if d := cmp.Diff(want, drawn(t, run, view.SketchOptions{Width: 80, ASCII: true})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	want = []string{
		"web starts, T0 at 4.00 s",
		"web stops, T0 at 24.0 s",
	}
	var titles []string
	for _, line := range drawn(t, run, view.SketchOptions{Width: 80, ASCII: true, Tasks: true}) {
		if strings.Contains(line, ", T0 at ") {
			titles = append(titles, line)
		}
	}
	if d := cmp.Diff(want, titles); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestManyFaultsShareLines(t *testing.T) {
	t.Parallel()
	run := view.RecordedRun{Scenario: "faults", Begun: time.Unix(1_800_000_000, 0), Seconds: 100, Outcome: view.Passed}
	for i := range 20 {
		run.Faults = append(run.Faults, view.RecordedStep{Text: fmt.Sprintf("fault %d", i), From: float64(i * 5), To: float64(i*5 + 6)})
	}
	lines := 0
	for _, line := range drawn(t, run, view.SketchOptions{Width: 160, ASCII: true}) {
		if strings.Contains(line, "==") {
			lines++
		}
	}
	if lines != 2 {
		t.Errorf("20 faults, each into the next one, have %d lines", lines)
	}
	run.Faults = run.Faults[:8]
	if text := strings.Join(drawn(t, run, view.SketchOptions{Width: 160, ASCII: true}), "\n"); strings.Count(text, "fault ") != 8 {
		t.Errorf("few faults have no names:\n%s", text)
	}
}

func TestIdleTimeIsCut(t *testing.T) {
	t.Parallel()
	run := view.RecordedRun{Scenario: "idle", Begun: time.Unix(1_800_000_000, 0), Seconds: 600, Outcome: view.Passed, Tasks: []view.RecordedTask{{Name: "web", Events: []view.RecordedEvent{
		event(1, "status", "web", "RUNNING"), event(2, "status", "", "RUNNING"), event(590, "desired", "", "STOPPED"), event(598, "status", "", "STOPPED"),
	}}}}
	lines := drawn(t, run, view.SketchOptions{Width: 80, ASCII: true})
	if last := lines[len(lines)-1]; strings.Count(last, "/") != 1 || !strings.Contains(lines[2], "/") || !strings.Contains(last, "T") {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
}

// full is a disk that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestTheWritersErrorIsReturned(t *testing.T) {
	t.Parallel()
	if err := view.WriteSketch(full{}, view.RecordedRun{}, view.SketchOptions{}); err == nil || err.Error() != "no space" {
		t.Errorf("got %v", err)
	}
}

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
)

// One small round: both servers are asked by AWS's own client, and give the same.
func TestAPIRound(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	w, err := simulated.Open(simulated.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	tasks, err := w.Run(simulated.Group{Family: "web", Count: 250})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.askAPI(w, tasks, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range []sample{r.list.ours, r.list.plain, r.describe.ours, r.describe.plain} {
		if len(got) != 3 || got.min() <= 0 {
			t.Errorf("sample %d: %v", i, got)
		}
	}
	if r.all <= 0 {
		t.Errorf("all took %g s", r.all)
	}
	if _, err := s.askAPI(w, append(tasks, tasks[0]), 0); err == nil || err.Error() != "250 of 251 tasks were listed" {
		t.Errorf("got %v", err)
	}
}

func TestAPIRows(t *testing.T) {
	t.Parallel()
	rows := apiRows("x: ", []apiRound{
		{list: asked{ours: sample{1, 3}, plain: sample{1}}, describe: asked{ours: sample{4}, plain: sample{2}}, all: 2},
		{list: asked{ours: sample{2}, plain: sample{1}}, describe: asked{ours: sample{5}, plain: sample{3}}, all: 1},
	})
	floor := func(values ...float64) []reference { return []reference{{"the same bytes, plain net/http", values}} }
	want := []row{
		{"x: ListTasks, a page of 100: p50", milliseconds, "", "10", sample{1, 2}, floor(1, 1)},
		{"x: ListTasks, a page of 100: p99", milliseconds, "", "10", sample{3, 2}, floor(1, 1)},
		{"x: DescribeTasks of 100 with TAGS: p50", milliseconds, "", "20", sample{4, 5}, floor(2, 3)},
		{"x: DescribeTasks of 100 with TAGS: p99", milliseconds, "", "20", sample{4, 5}, floor(2, 3)},
		{"x: all listed and described, 200 calls", seconds, "", "", sample{2, 1}, nil},
	}
	if diff := cmp.Diff(want, rows, cmp.AllowUnexported(row{}, reference{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

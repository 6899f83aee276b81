package control_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func task(name, id, service, family, status string) control.Task {
	return control.Task{Name: name, Task: shapes.Task{
		TaskARN: "arn:task/default/" + id, TaskDefinitionARN: "arn:task-definition/" + family + ":1",
		Group: "service:" + service, LastStatus: status, DesiredStatus: "RUNNING",
	}}
}

func TestResolveTasks(t *testing.T) {
	t.Parallel()
	s := control.State{
		Tasks: []control.Task{
			task("api-1", "aaaa1111", "api", "shop", "STOPPED"),
			task("api-2", "aaaa2222", "api", "shop", "RUNNING"),
			task("api-3", "bbbb1111", "api", "shop", "RUNNING"),
			task("job", "cccc1111", "", "batch", "STOPPED"),
			task("job", "cccc2222", "", "batch", "STOPPED"),
		},
		Planned: []string{"late"},
	}
	for _, tt := range []struct {
		word  string
		ids   []string
		error string // of One
	}{
		{"api-1", []string{"aaaa1111"}, ""},
		{"aaaa2222", []string{"aaaa2222"}, ""},
		{"arn:task/default/bbbb1111", []string{"bbbb1111"}, ""},
		{"bbbb", []string{"bbbb1111"}, ""},
		{"xyz", nil, "no task xyz; want one of api-1, api-2, api-3, job, late"},
		{"aaaa", []string{"aaaa1111", "aaaa2222"}, `"aaaa" matches several tasks: name one of api-1, api-2`},
		{"api", []string{"aaaa2222", "bbbb1111"}, `"api" matches several tasks: name one of api-2, api-3`},
		{"shop", []string{"aaaa2222", "bbbb1111"}, `"shop" matches several tasks: name one of api-2, api-3`},
		{"batch", []string{"cccc2222"}, ""},
		{"job", []string{"cccc2222"}, ""},
		{"late", nil, "late has not started yet"},
		{"api-33", nil, "no task api-33; did you mean api-3?"},
	} {
		var ids []string
		for _, found := range s.Named(tt.word) {
			ids = append(ids, found.ID())
		}
		one, err := s.One(tt.word)
		said := ""
		if err != nil {
			said = err.Error()
		}
		diff := cmp.Diff(tt.ids, ids)
		if diff != "" {
			t.Errorf("%s: %s, %v %q, want %q", tt.word, diff, one.ID(), said, tt.error)
		}
		testkit.Equal(t, tt.word+": said", said, tt.error)
		if err == nil && one.ID() != tt.ids[0] {
			t.Errorf("%s: %s, %v %q, want %q", tt.word, diff, one.ID(), said, tt.error)
		}
	}
}

func TestNoSuch(t *testing.T) {
	t.Parallel()
	for want, known := range map[string][]string{
		"no task web; there are none yet": nil,
		"no task web; did you mean wbe?":  {"api", "wbe"},
		"no task web; want one of a1, a2": {"a2", "a1", "a2"},
		"no task web; want one of 01x, 02x, 03x, 04x, 05x, 06x, 07x, 08x, 09x, 10x, 11x, 12x, ...": {"01x", "02x",
			"03x", "04x", "05x", "06x", "07x", "08x", "09x", "10x", "11x", "12x", "13x"},
	} {
		if got := control.NoSuch("task", "web", known).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTaskHealthCountsContainersWithChecks(t *testing.T) {
	t.Parallel()
	c := func(essential bool, health string) control.Container {
		checked := health != ""
		if !checked {
			health = "UNKNOWN"
		}
		return control.Container{
			Container: shapes.Container{HealthStatus: health}, Essential: essential, HealthCheck: checked,
		}
	}
	for name, tt := range map[string]struct {
		status     string
		containers []control.Container
		want       bool
	}{
		"no checks":           {"RUNNING", []control.Container{c(true, "")}, false},
		"one without a check": {"RUNNING", []control.Container{c(true, ""), c(true, "HEALTHY")}, true},
		"one undecided": {"RUNNING", []control.Container{c(true, "UNKNOWN"), c(true, "HEALTHY")},
			false},
		"a side one is ill": {"RUNNING", []control.Container{c(false, "UNHEALTHY"), c(true, "HEALTHY")},
			true},
		"only side ones have checks":      {"RUNNING", []control.Container{c(false, "UNHEALTHY"), c(true, "")}, false},
		"it does not run, and is healthy": {"PENDING", []control.Container{c(true, "HEALTHY")}, false},
	} {
		got := control.Task{Task: shapes.Task{LastStatus: tt.status, DesiredStatus: "RUNNING"},
			Containers: tt.containers}.Healthy()
		if got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

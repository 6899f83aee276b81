package cluster

import (
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
)

// runtimes is what a test finds with processes and in an engine.
type runtimes struct{ process, docker string }

func (r runtimes) want() string {
	if *inDocker != "" {
		return r.docker
	}
	return r.process
}

// What containers of the runtimes may do differs here, and nowhere else that is
// known: docs/localecs/fidelity.md says with which one ECS agrees.
func TestRuntimesDiffer(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil,
		helper("files", "write", "/bin/env", "/x"),
		optional(helper("status", "read", "/proc/self/status")),
		after(helper("end", "run", "0s", "0"), "status", "SUCCESS")).await("files", "end")
	for what, tt := range map[string]struct {
		container string
		has       runtimes
	}{
		"a program of the image":  {"files", runtimes{"/bin/env EROFS", "/bin/env ok"}},
		"the root file system":    {"files", runtimes{"/x ok", "/x ok"}},
		"setuid programs":         {"status", runtimes{`NoNewPrivs:\t1`, `NoNewPrivs:\t0`}},
		"capabilities, and mknod": {"status", runtimes{`CapBnd:\t00000000a00425fb`, `CapBnd:\t00000000a80425fb`}},
	} {
		if log := s.log(tt.container); !strings.Contains(log, tt.has.want()) {
			t.Errorf("%s: %q is not in\n%s", what, tt.has.want(), log)
		}
	}
	s.end().stopped()
}

// The task's memory is what its containers use together; an engine knows limits of
// containers only, and gives each all of it.
func TestRuntimesDifferInTheTasksMemory(t *testing.T) {
	t.Parallel()
	s := newLimited(t).startTask(t, func(d *taskdef.TaskDefinition) { d.Memory = "512" }, helper("a", "eat", "300"), after(helper("b", "eat", "300"), "a", "START"))
	if *inDocker != "" {
		s.await("a", "b").end().stopped()
		return
	}
	v := s.stopped()
	killed := 0
	for _, c := range v.Containers {
		if c.Reason == "OutOfMemoryError: Container killed due to memory usage" {
			killed++
		}
	}
	if killed == 0 {
		t.Errorf("%+v", v)
	}
}

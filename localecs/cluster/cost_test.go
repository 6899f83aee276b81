package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// holdings are what this process has of the host.
type holdings struct {
	descriptors, goroutines, children int
}

func held(t *testing.T) holdings {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	h := holdings{descriptors: len(open), goroutines: goruntime.NumGoroutine()}
	for _, path := range stats {
		text, _ := os.ReadFile(path) // none: it has ended
		if _, after, ok := strings.Cut(string(text), ") "); ok && strings.HasPrefix(after[1:], fmt.Sprintf(" %d ", os.Getpid())) {
			h.children++
		}
	}
	return h
}

// What a task costs decides how many fit on a machine: two hundred tasks of one
// container are to stay well below a usual limit on open files, and no process
// stands beside the programs. Not parallel: it counts what all tests have.
func TestTaskHoldsFewDescriptors(t *testing.T) {
	w := newFixture(t, nil)
	first := w.run(t, nil, shell("a", "exec sleep 600")) // what is made once is there then
	until(t, first, "the first runs", running)
	before := held(t)
	const tasks, containers = 3, 2
	for range tasks {
		task := w.run(t, nil, shell("a", "exec sleep 600"), shell("b", "exec sleep 600"))
		until(t, task, "it runs", running)
	}
	// Of a task: its network; a goroutine that runs it and one of its metadata
	// server. Of a container: its log, its process and two pipes; two goroutines
	// that read these and two that wait for the process.
	most := holdings{
		descriptors: before.descriptors + tasks*(1+4*containers),
		goroutines:  before.goroutines + tasks*(2+4*containers),
		children:    before.children + tasks*containers,
	}
	var now holdings
	defer func() { t.Logf("%+v before, %+v now, %+v at most", before, now, most) }()
	testkit.Eventually(t, "tasks hold no more than they should", func() bool {
		now = held(t)
		return now.descriptors <= most.descriptors && now.goroutines <= most.goroutines && now.children == most.children
	})
}

package runtime

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func factsOf(t *testing.T, text string) facts {
	t.Helper()
	var f facts
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return f
}

// eventually waits for a condition about processes of this host.
func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	timeout := time.After(testkit.Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-timeout:
			t.Fatalf("waited %s in vain", testkit.Patience)
		case <-tick.C:
		}
	}
}

// namespaceOf returns one namespace of a process, "" when it is gone.
func namespaceOf(pid int, kind string) string {
	ns, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
	return ns
}

func sameNamespace(a, b int) bool {
	ns := namespaceOf(a, "pid")
	return ns != "" && ns == namespaceOf(b, "pid")
}

// insiders returns the processes in a process's pid namespace, it first.
func insiders(t testing.TB, pid int) []int {
	t.Helper()
	inside := []int{pid}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		other, _ := strconv.Atoi(filepath.Base(dir))
		if other != pid && sameNamespace(other, pid) {
			inside = append(inside, other)
		}
	}
	return inside
}

package dockerengine

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// sweep removes what the tests made.
func (e *Engine) sweep(t testing.TB) {
	t.Helper()
	label, project := "label="+e.ID, "label=com.docker.compose.project="+e.ID
	for _, what := range []struct{ list, remove []string }{
		{[]string{"ps", "-aq", "--filter", label}, []string{"rm", "-f", "-v"}},
		{[]string{"ps", "-aq", "--filter", project}, []string{"rm", "-f", "-v"}},
		{[]string{"network", "ls", "-q", "--filter", label}, []string{"network", "rm"}},
		{[]string{"network", "ls", "-q", "--filter", project}, []string{"network", "rm"}},
		{[]string{"volume", "ls", "-q", "--filter", label}, []string{"volume", "rm"}},
		{[]string{"volume", "ls", "-q", "--filter", project}, []string{"volume", "rm"}},
		{[]string{"image", "ls", "-q", "--filter", "reference=" + e.ID + "*"}, []string{"image", "rm", "-f"}},
	} {
		list, code := e.Try(what.list...)
		names := strings.Fields(list.Stdout)
		slices.Sort(names) // an image has a line for each of its names
		names = slices.Compact(names)
		if code == 0 && len(names) > 0 {
			list, code = e.Try(append(what.remove, names...)...)
		}
		if code != 0 {
			t.Errorf("clean up: %s", list.Stderr)
		}
	}
}

// cgroupPrefix begins the names of our control groups.
const cgroupPrefix = "consul-ecs-test-"

// nothingLeft removes the control groups of the engine, and of those whose test
// was killed, and looks for anything else.
func nothingLeft(t testing.TB, dir string) {
	t.Helper()
	groups, _ := filepath.Glob("/sys/fs/cgroup/" + cgroupPrefix + "*")
	more, _ := filepath.Glob("/sys/fs/cgroup/*/" + cgroupPrefix + "*")
	for _, group := range append(groups, more...) {
		pid := strings.TrimPrefix(filepath.Base(group), cgroupPrefix)
		if _, err := os.Stat("/proc/" + pid); err == nil && pid != strconv.Itoa(os.Getpid()) {
			continue // another test's
		}
		testkit.Eventually(t, group+" is empty", func() bool { return removeGroup(group) == nil })
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || bytes.Contains(mounts, []byte(dir)) {
		t.Errorf("mounts are left (error %v)", err)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range processes {
		line, _ := os.ReadFile(file) // it may have ended
		if bytes.Contains(line, []byte(dir)) {
			t.Errorf("a process is left: %q", line)
		}
	}
}

// removeGroup removes a control group and those below it.
func removeGroup(path string) error {
	var groups []string
	filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		return nil
	})
	for _, group := range slices.Backward(groups) {
		if err := os.Remove(group); err != nil && !os.IsNotExist(err) {
			return err // another test may be removing it, too
		}
	}
	return nil
}

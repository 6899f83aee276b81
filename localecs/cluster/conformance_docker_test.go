package cluster

import (
	"bytes"
	"flag"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/dockerengine"
)

// inDocker is the address of the engine that the containers of all tests run in;
// empty runs them as processes.
var inDocker = flag.String("docker", "", "address of a Docker engine to run the tests' containers in")

// suite are the tests that hold in an engine as they do with processes: what ECS
// promises, and what the API of this package does.
const suite = "^Test(Conformance|Essential|Endpoints|Health|TasksShare|TasksFind|CloseEnds|Frozen|Slowed|Closed|OOM|Interrupt|Partitions|Service|Kill|Stats|Probe|Observer|StopOrder|NothingStarts|RuntimesDiffer|Attach|Visitors)"

// TestInDocker runs the suite once more, with containers of a real engine.
func TestInDocker(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	e := dockerengine.Start(t)
	listed, err := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.list="+suite).Output()
	if err != nil {
		t.Fatal(err)
	}
	if tests := bytes.Count(listed, []byte("Test")); tests < 60 {
		t.Fatalf("%d tests are in the suite, want at least 60", tests)
	}
	dir := t.TempDir()
	// Not -test.v: only failures are reported.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run="+suite, "-test.parallel=4", "-docker="+e.Host)
	cmd.Env = append(slices.Clip(e.Env), "TMPDIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, list := range [][]string{{"ps", "-a"}, {"volume", "ls"}} {
		if left := e.Run(t, append(list, "--format", `{{.Label "localecs.dir"}}`)...); strings.Contains(left, dir) {
			t.Errorf("%s: something is left of %s", list, left)
		}
	}
}

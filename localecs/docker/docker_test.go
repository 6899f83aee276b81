package docker

import (
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"", DefaultAddress, "unix:///run/user/1000/docker.sock"} {
		if err := CheckAddress(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	const want = "the Docker engine at tcp://10.0.0.1:2375: localecs makes the tasks' network itself and has to run on the engine's host, where its address is unix://PATH; or in a container of that engine, as docs/localecs/how-to.md has it"
	if err := CheckAddress("tcp://10.0.0.1:2375"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// What comes of a probe.
func TestResult(t *testing.T) {
	t.Parallel()
	const noProgram = refused + `exec failed: unable to start container process: exec: "x": executable file not found in $PATH: unknown`
	for name, tt := range map[string]struct {
		state       container.ExecInspect
		output      string
		interrupted bool
		want        runtime.ExecResult
	}{
		"ended":                {container.ExecInspect{ExitCode: 3}, "out", false, runtime.ExecResult{Code: 3, Output: "out", Started: true}},
		"killed by itself":     {container.ExecInspect{ExitCode: 137}, "", false, runtime.ExecResult{Code: 137, Started: true}},
		"killed by us":         {container.ExecInspect{ExitCode: 137}, "out", true, runtime.ExecResult{Code: runtime.CodeTimedOut, Output: "out", Started: true}},
		"just in time":         {container.ExecInspect{ExitCode: 1}, "out", true, runtime.ExecResult{Code: 1, Output: "out", Started: true}},
		"not to be killed":     {container.ExecInspect{Running: true}, "", true, runtime.ExecResult{Code: runtime.CodeTimedOut, Started: true}},
		"not there":            {container.ExecInspect{ExitCode: 127}, noProgram + "\r\n", false, runtime.ExecResult{Code: runtime.CodeNotStarted, Output: noProgram}},
		"a shell that has 127": {container.ExecInspect{ExitCode: 127}, "sh: x: not found\n", false, runtime.ExecResult{Code: 127, Output: "sh: x: not found\n", Started: true}},
	} {
		if diff := cmp.Diff(tt.want, result(t.Context(), runtime.ExecSpec{}, tt.state, tt.output, tt.interrupted)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// The engine's word counts where it can be true.
func TestMoment(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Hour)
	told := began.Add(time.Minute)
	if got := moment(told.Format(time.RFC3339Nano), began); !got.Equal(told.Round(0)) {
		t.Errorf("%v, want %v", got, told)
	}
	for _, text := range []string{"", "0001-01-01T00:00:00Z", began.Add(-time.Second).Format(time.RFC3339Nano), time.Now().Add(time.Hour).Format(time.RFC3339Nano)} {
		if got := moment(text, began); time.Since(got) > time.Minute {
			t.Errorf("%q: %v, want now", text, got)
		}
	}
}

func TestKeptIsTheBeginning(t *testing.T) {
	t.Parallel()
	var k kept
	for range 3 {
		if n, err := k.Write([]byte(strings.Repeat("x", 3000))); n != 3000 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if k.text.Len() != maxOutput {
		t.Errorf("%d bytes, want %d", k.text.Len(), maxOutput)
	}
}

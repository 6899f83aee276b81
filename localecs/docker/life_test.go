package docker

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// An engine may report that a container has ended before it reports that it was for its
// memory.
func TestOutOfMemoryStateIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code   int
		memory int64
		ours   bool // the SIGKILL
		late   int  // the answers that do not say it yet
		oom    bool
		asked  int
	}{
		"at once":           {runtime.CodeKilled, 64 << 20, false, 0, true, 1},
		"late":              {runtime.CodeKilled, 64 << 20, false, 3, true, 4},
		"never":             {runtime.CodeKilled, 64 << 20, false, memoryLooks, false, memoryLooks},
		"killed by us":      {runtime.CodeKilled, 64 << 20, true, 3, false, 1},
		"not killed":        {1, 64 << 20, false, 3, false, 1},
		"without its limit": {runtime.CodeKilled, 0, false, 3, false, 1},
	} {
		asked := 0
		engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/containers/id/json") {
				http.NotFound(w, r)
				return
			}
			asked++
			_ = json.NewEncoder(w).Encode(container.InspectResponse{
				State:      &container.State{OOMKilled: asked > c.late},
				HostConfig: &container.HostConfig{Resources: container.Resources{Memory: c.memory}},
			})
		}))
		defer engine.Close()
		api, err := client.New(client.WithHost(strings.Replace(engine.URL, "http", "tcp", 1)), client.WithAPIVersion("1.41"))
		if err != nil {
			t.Fatal(err)
		}
		l := &life{group: &group{engine: &Engine{api: api}}, id: "id", processes: runtime.NewProcesses(0, nil)}
		if c.ours {
			l.processes.Kill()
		}
		state := l.final(t.Context(), c.code)
		if state == nil || state.OOMKilled != c.oom {
			t.Errorf("%s: %+v, want OOM %t", name, state, c.oom)
		}
		testkit.Equal(t, name+": answers", asked, c.asked)
	}
}

// The end of a container that the engine does not report is noticed here: else the
// task would never end.
func TestUnreportedEndLosesTheEngine(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(cmd.Process.Pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	pidfd := os.NewFile(uintptr(fd), "pidfd")
	defer pidfd.Close()
	e := newEngine(Options{}, nil)
	e.limit = time.Millisecond
	l := &life{group: &group{engine: e}, name: "web/app", processes: runtime.NewProcesses(cmd.Process.Pid, pidfd), waiting: client.ContainerWaitResult{}}
	code := make(chan int)
	go func() { code <- l.code() }()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if got := <-code; got != runtime.CodeKilled {
		t.Errorf("code %d, want %d", got, runtime.CodeKilled)
	}
	<-e.Lost()
	if want := "the Docker engine has not reported the end of container web/app within 1ms"; e.Err().Error() != want {
		t.Errorf("%v, want %s", e.Err(), want)
	}
}

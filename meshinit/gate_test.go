package meshinit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	thisTask  = "arn:aws:ecs:us-west-2:123456789012:task/prod/this"
	otherTask = "arn:aws:ecs:us-west-2:123456789012:task/prod/other"
)

// endpoint is a metadata endpoint whose answer a test changes.
type endpoint struct {
	mu   sync.Mutex
	err  error
	task workload.Task
}

func (e *endpoint) Task(context.Context) (workload.Task, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.task, e.err
}

// meshInitEnds makes ECS report the end of mesh-init's container, without an exit code
// if it is negative.
func (e *endpoint) meshInitEnds(code int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := workload.Container{Name: workload.ContainerMeshInit, DesiredStatus: "RUNNING",
		KnownStatus: "STOPPED", ExitCode: &code}
	if code < 0 {
		c.ExitCode = nil
	}
	e.task.Containers = []workload.Container{c}
}

func (e *endpoint) set(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
}

// wait is one wait at a gate, in a synctest bubble.
type wait struct {
	t        *testing.T
	dir      string
	metadata *endpoint
	log      *testkit.Log
	cancel   context.CancelCauseFunc
	ended    chan error
	start    time.Time
}

// atGate runs a test with virtual time, with a limit of one minute.
func atGate(t *testing.T, prepare func(*wait), test func(*wait)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &wait{t: t, dir: dir, metadata: &endpoint{task: workload.Task{TaskARN: thisTask}}, log: &testkit.Log{},
			ended: make(chan error, 1), start: time.Now()}
		prepare(w)
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		w.cancel = cancel
		gate := meshinit.Gate{Dir: dir, Metadata: w.metadata, Limit: time.Minute,
			Log: hclog.New(&hclog.LoggerOptions{Output: w.log, DisableTime: true})}
		go func() { w.ended <- gate.Wait(ctx) }()
		test(w)
		cancel(nil)
		synctest.Wait()
	})
}

func (w *wait) status(task, outcome, message string) {
	w.t.Helper()
	doc := fmt.Sprintf(`{"task":%q,"outcome":%q,"message":%q}`, task, outcome, message)
	if err := os.WriteFile(filepath.Join(w.dir, workload.FileStatus), []byte(doc), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// pass lets virtual time go by.
func (w *wait) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *wait) wantClosed() {
	w.t.Helper()
	select {
	case err := <-w.ended:
		w.t.Fatalf("the wait ended: %v", err)
	default:
	}
}

// result returns the error of a wait that has ended within limit from now.
func (w *wait) result(limit time.Duration) error {
	w.t.Helper()
	w.pass(limit)
	select {
	case err := <-w.ended:
		return err
	default:
		w.t.Fatalf("the wait did not end within %s:\n%s", limit, w.log)
		return nil
	}
}

func (w *wait) wantOpen(limit time.Duration) {
	w.t.Helper()
	if err := w.result(limit); err != nil {
		w.t.Error(err)
	}
}

func (w *wait) wantError(limit time.Duration, texts ...string) {
	w.t.Helper()
	err := w.result(limit)
	for _, problem := range differs(err, exit.CodeUnknown, texts) {
		w.t.Error(problem)
	}
}

// The time until the next look of a wait that has just started, and of a long one.
const look, lateLook = 20 * time.Millisecond, 200 * time.Millisecond

func TestGateOpensForTheStatusOfThisTaskOnly(t *testing.T) {
	t.Parallel()
	for _, outcome := range []string{"ready", "failed", "starting"} {
		atGate(t, func(w *wait) { w.status(otherTask, outcome, "of another task") }, func(w *wait) {
			w.pass(50 * time.Second)
			w.wantClosed()
			w.status(thisTask, "starting", "log in")
			w.pass(time.Second)
			w.wantClosed()
			w.status(thisTask, "ready", "")
			w.wantOpen(lateLook)
		})
	}
}

func TestOpenGateCostsNoTime(t *testing.T) {
	t.Parallel()
	atGate(t, func(w *wait) { w.status(thisTask, "ready", "") }, func(w *wait) { w.wantOpen(look) })
}

func TestFailureOfMeshInitEndsTheWaitWithItsMessage(t *testing.T) {
	t.Parallel()
	atGate(t, func(*wait) {}, func(w *wait) {
		w.pass(time.Second)
		w.status(thisTask, "failed", "log in: role is not trusted")
		w.wantError(look, "mesh-init failed", "log in: role is not trusted")
	})
}

// A mesh-init that was killed, or cannot write to the volume, leaves no status. One
// of an earlier version leaves none either, and its files are those of this task.
func TestExitCodeOfMeshInitCountsWithoutAStatus(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*wait){
		"no status":           func(*wait) {},
		"of another task":     func(w *wait) { w.status(otherTask, "ready", "") },
		"killed while it ran": func(w *wait) { w.status(thisTask, "starting", "log in") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atGate(t, prepare, func(w *wait) {
				w.pass(5 * time.Second)
				w.wantClosed()
				w.metadata.meshInitEnds(137)
				w.wantError(time.Second, "consul-ecs-mesh-init", "exit code 137", "its log")
			})
			atGate(t, prepare, func(w *wait) {
				w.metadata.meshInitEnds(0)
				w.wantOpen(time.Second)
			})
		})
	}
	atGate(t, func(w *wait) { w.status(thisTask, "failed", "its own message"); w.metadata.meshInitEnds(3) },
		func(w *wait) {
			w.wantError(time.Second, "its own message")
		})
}

// ECS reports no exit code of a container that it could not start.
func TestMeshInitThatECSCouldNotStartEndsTheWait(t *testing.T) {
	t.Parallel()
	atGate(t, func(*wait) {}, func(w *wait) {
		w.pass(5 * time.Second)
		w.wantClosed()
		w.metadata.meshInitEnds(-1)
		w.wantError(time.Second, "ECS did not start container consul-ecs-mesh-init", "containers[].reason")
	})
}

func TestWaitGivesUpWithoutProgress(t *testing.T) {
	t.Parallel()
	atGate(t, func(*wait) {}, func(w *wait) {
		w.pass(50 * time.Second)
		for _, step := range []string{"log in", "register"} {
			w.status(thisTask, "starting", step)
			w.pass(50 * time.Second)
			w.wantClosed()
		}
		// The limit, and what mesh-init needs to report the failure itself.
		w.pass(10 * time.Second)
		w.wantClosed()
		w.wantError(80*time.Second+2*lateLook, "gave up after 4m0", "mesh-init: register")
	})
	atGate(t, func(w *wait) {
		w.status(otherTask, "starting", "")
		w.metadata.set(errors.New("status 500")) // before the gate asks
	}, func(w *wait) { w.wantError(time.Minute+lateLook, "gave up after 1m0", "task metadata") })
}

// TERM may come before the first answer of the metadata, to a task that is registered.
func TestTERMBeforeTheFirstMetadataReadFindsAnOpenGate(t *testing.T) {
	t.Parallel()
	atGate(t, func(w *wait) { w.status(thisTask, "ready", ""); w.metadata.set(errors.New("status 500")) },
		func(w *wait) {
			w.pass(100 * time.Millisecond)
			w.wantClosed()
			w.metadata.set(nil)
			w.cancel(&exit.SignalError{Signal: syscall.SIGTERM})
			w.wantOpen(look)
		})
}

// However long that takes: the task runs, unless an earlier one has left the status.
func TestGateOpensAfterAMetadataOutage(t *testing.T) {
	t.Parallel()
	const outageTime = 5 * time.Minute
	outage := func(task string, test func(*wait)) {
		atGate(t, func(w *wait) { w.status(task, "ready", ""); w.metadata.set(errors.New("status 500")) },
			func(w *wait) {
				w.pass(outageTime)
				w.wantClosed()
				w.metadata.set(nil)
				test(w)
			})
	}
	outage(thisTask, func(w *wait) { w.wantOpen(250 * time.Millisecond) })
	outage(otherTask, func(w *wait) { w.wantError(250*time.Millisecond, "gave up after 5m0", "of this task") })
}

func TestWaitLogsMissingConditionsEveryTenSeconds(t *testing.T) {
	t.Parallel()
	atGate(t, func(*wait) {}, func(w *wait) {
		w.pass(15 * time.Second)
		w.status(thisTask, "starting", "log in")
		w.pass(10 * time.Second)
		w.status(thisTask, "ready", "")
		w.wantOpen(lateLook)
		got := strings.Split(strings.TrimSpace(w.log.String()), "\n")
		want := []string{workload.FileStatus + ", which mesh-init writes",
			workload.FileStatus, "mesh-init: log in", "finished waiting"}
		if len(got) != len(want) {
			w.t.Fatalf("log:\n%s", w.log)
		}
		for i, text := range want {
			if !strings.Contains(got[i], text) {
				w.t.Errorf("line %d is %q, want %q", i, got[i], text)
			}
		}
	})
}

func TestSignalEndsTheWaitAtOnce(t *testing.T) {
	t.Parallel()
	atGate(t, func(*wait) {}, func(w *wait) {
		w.pass(time.Second)
		w.cancel(&exit.SignalError{Signal: syscall.SIGTERM})
		w.wantError(0, "stopped by signal terminated")
	})
	// Ready since the last look: the caller has a token to log out.
	atGate(t, func(*wait) {}, func(w *wait) {
		w.pass(time.Second)
		w.status(thisTask, "ready", "")
		w.cancel(&exit.SignalError{Signal: syscall.SIGTERM})
		w.wantOpen(0)
	})
}

// The status that mesh-init writes, from its own side.
func TestMeshInitReportsItsOutcome(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, loginDoc)
	task := "arn:aws:ecs:us-west-2:123456789012:task/prod/" + s.taskID
	if err := os.WriteFile(filepath.Join(s.dir, workload.FileStatus),
		[]byte(`{"task":"`+otherTask+`","outcome":"ready"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	wantStatus := func(want string) {
		t.Helper()
		if got := bytes.TrimSpace(s.file(workload.FileStatus)); string(got) != want {
			t.Errorf("status %s, want %s", got, want)
		}
		s.wantMode(workload.FileStatus, 0o644)
	}
	copyProgram := s.deps.CopyProgram
	s.deps.CopyProgram = func(path string) error { return errors.New("disk full") }
	if s.run() == nil {
		t.Fatal("no error")
	}
	wantStatus(`{"task":"` + task + `","outcome":"failed","message":"disk full"}`)
	s.deps.CopyProgram = copyProgram
	s.mustRun()
	wantStatus(`{"task":"` + task + `","outcome":"ready"}`)
	// The task runs: a later run's failure is not its end.
	s.deps.CopyProgram = func(path string) error { return errors.New("disk full") }
	if s.run() == nil {
		t.Fatal("no error")
	}
	wantStatus(`{"task":"` + task + `","outcome":"ready"}`)
}

func TestMeshInitReportsFailureBeforeReadingMetadata(t *testing.T) {
	t.Parallel()
	s := newFixture(t, open, plainDoc)
	s.options.Proxy = meshinit.AgentProxy{GRPC: meshinit.GRPC{Address: "nonsense"}}
	if err := s.run(); cli.ExitCode(err) != exit.CodeUsage {
		t.Fatalf("error = %v", err)
	}
	if got := string(s.file(workload.FileStatus)); !strings.Contains(got, s.taskID) ||
		!strings.Contains(got, `gRPC address \"nonsense\"`) {
		t.Errorf("status %s", got)
	}
}

func TestMeshInitReportsTheStepUnderWay(t *testing.T) {
	t.Parallel()
	s := newFixture(t, secured, strings.Replace(loginDoc, trusting, "nope", 1))
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- meshinit.Run(ctx, s.options, s.deps) }()
	testkit.Eventually(t, "the status has the step", func() bool {
		data, _ := os.ReadFile(filepath.Join(s.dir, workload.FileStatus))
		return strings.Contains(string(data), `"outcome":"starting","message":"log in"`)
	})
	cancel(&exit.SignalError{Signal: syscall.SIGTERM})
	<-ended
	if got := string(s.file(workload.FileStatus)); !strings.Contains(got, `"outcome":"failed"`) ||
		!strings.Contains(got, "stopped by signal terminated") {
		t.Errorf("status %s", got)
	}
}

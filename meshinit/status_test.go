package meshinit_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/workload"
)

// The status that mesh-init writes, from its own side.
func TestMeshInitReportsItsOutcome(t *testing.T) {
	t.Parallel()
	s := newScene(t, secured, loginDoc)
	task := "arn:aws:ecs:us-west-2:123456789012:task/prod/" + s.taskID
	if err := os.WriteFile(filepath.Join(s.dir, workload.FileStatus), []byte(`{"task":"`+otherTask+`","outcome":"ready"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	wantStatus := func(want string) {
		t.Helper()
		if got := bytes.TrimSpace(s.file(workload.FileStatus)); string(got) != want {
			t.Errorf("status %s, want %s", got, want)
		}
		s.wantMode(workload.FileStatus, 0o644)
	}
	copyProgram := s.ports.CopyProgram
	s.ports.CopyProgram = func(path string) error { return errors.New("disk full") }
	if s.run() == nil {
		t.Fatal("no error")
	}
	wantStatus(`{"task":"` + task + `","outcome":"failed","message":"disk full"}`)
	s.ports.CopyProgram = copyProgram
	s.mustRun()
	wantStatus(`{"task":"` + task + `","outcome":"ready"}`)
	// The task runs: a later run's failure is not its end.
	s.ports.CopyProgram = func(path string) error { return errors.New("disk full") }
	if s.run() == nil {
		t.Fatal("no error")
	}
	wantStatus(`{"task":"` + task + `","outcome":"ready"}`)
}

func TestMeshInitReportsFailureBeforeItKnowsItsTask(t *testing.T) {
	t.Parallel()
	s := newScene(t, open, plainDoc)
	s.options.GRPC = meshinit.GRPC{Address: "nonsense"}
	if err := s.run(); cli.ExitCode(err) != exit.CodeUsage {
		t.Fatalf("error = %v", err)
	}
	if got := string(s.file(workload.FileStatus)); !strings.Contains(got, s.taskID) || !strings.Contains(got, `gRPC address \"nonsense\"`) {
		t.Errorf("status %s", got)
	}
}

func TestMeshInitReportsTheStepUnderWay(t *testing.T) {
	t.Parallel()
	s := newScene(t, secured, strings.Replace(loginDoc, trusting, "nope", 1))
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- meshinit.Run(ctx, s.options, s.ports) }()
	testkit.Eventually(t, "the status has the step", func() bool {
		data, _ := os.ReadFile(filepath.Join(s.dir, workload.FileStatus))
		return strings.Contains(string(data), `"outcome":"starting","message":"log in"`)
	})
	cancel(&exit.SignalError{Signal: syscall.SIGTERM})
	<-ended
	if got := string(s.file(workload.FileStatus)); !strings.Contains(got, `"outcome":"failed"`) || !strings.Contains(got, "stopped by signal terminated") {
		t.Errorf("status %s", got)
	}
}

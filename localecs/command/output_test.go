package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// stuck is a reader that has stopped reading, until released.
type stuck struct {
	bytes.Buffer
	released chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.released
	return s.Buffer.Write(p)
}

func note(dropped int) []byte { return fmt.Appendf(nil, "%d dropped\n", dropped) }

func TestLossyCountsWhatItDrops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := &stuck{released: make(chan struct{})}
		w := newAsyncWriter(t.Context(), reader, func(err error) { t.Error(err) })
		line := []byte(strings.Repeat("x", 1023) + "\n")
		out := w.Lossy(note)
		write := func(n int) {
			for range n {
				if n, err := out.Write(line); n != len(line) || err != nil {
					t.Fatal(n, err)
				}
			}
		}
		write(1)
		synctest.Wait() // the line is being written
		write(capacity/len(line) + 7)
		if _, err := out.Write([]byte("short\n")); err != nil { // would have room, and would be in the wrong place
			t.Fatal(err)
		}
		close(reader.released)
		synctest.Wait()
		write(1)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat(string(line), capacity/len(line)+1) + "8 dropped\n" + string(line)
		if got := reader.String(); got != want {
			t.Errorf("%d bytes, want %d; the end is %q", len(got), len(want), got[max(0, len(got)-2000):])
		}
	})
}

func TestWriteWaitsForTheReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := &stuck{released: make(chan struct{})}
		w := newAsyncWriter(t.Context(), reader, nil)
		time.AfterFunc(time.Hour, func() { close(reader.released) })
		began := time.Now()
		n, err := w.Write([]byte("report\n"))
		if err != nil {
			t.Error(err)
		}
		if n != 7 {
			t.Errorf("got %d bytes written, want 7", n)
		}
		if took := time.Since(began); took != time.Hour {
			t.Errorf("the write took %s, want %s", took, time.Hour)
		}
		if got, want := reader.String(), "report\n"; got != want {
			t.Errorf("got %q read, want %q", got, want)
		}
	})
}

func TestEndedRunDoesNotWaitForTheReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		reader := &stuck{released: make(chan struct{})}
		defer close(reader.released)
		w := newAsyncWriter(ctx, reader, nil)
		time.AfterFunc(time.Minute, cancel)
		began := time.Now()
		for range 3 { // not for each of them
			if _, err := w.Write([]byte("report\n")); !errors.Is(err, errReader) {
				t.Errorf("error %v", err)
			}
		}
		if took := time.Since(began); took != time.Minute+patience {
			t.Errorf("took %s", took)
		}
	})
}

func TestWatchEndsWithoutReader(t *testing.T) {
	t.Parallel()
	reader, pipe := io.Pipe()
	reader.Close()
	ctx, out := watch(t.Context(), pipe)
	if _, err := out.Write([]byte("x\n")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, io.ErrClosedPipe) || !strings.HasPrefix(err.Error(), "standard output cannot be written: ") {
		t.Errorf("cause %v", err)
	}
}

// Nothing reads the output, and its pipe is soon full.
func TestEventsDoNotWaitForTheReader(t *testing.T) {
	t.Parallel()
	reader, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer reader.Close() // first: it ends the write that is blocked
	ctx, cancel := context.WithCancel(t.Context())
	inv := &cli.Invocation{Stdout: pipe, Stderr: pipe, Log: hclog.NewNullLogger(), Getenv: func(string) string { return "" }}
	flags := runFlags{}
	follow, stop, err := flags.follower(ctx, inv, newAsyncWriter(ctx, pipe, func(error) {}))
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 { // 180 kB
		follow(scenario.Event{Kind: view.KindStatus, Task: "web", Container: "app", Text: "RUNNING"})
		inv.Log.Error("unable to start the container")
	}
	cancel()
	stop()
}

func TestWarningsOfTheLogLookLikeThoseOfTheCommand(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{Name: "localecs.run", Level: hclog.Warn, Output: &plainLog{w: &stderr}})
	for _, container := range []string{"a", "b"} {
		log.Warn(runtime.HostLacks, logkey.Container, container, logkey.Reason, "ulimit nofile is 1")
	}
	log.Warn("twice")
	log.Warn("twice")
	log.Named("x").Error("no answer", "error", "a: b")
	log.Info("hidden")
	const want = `localecs run: warning: this host cannot satisfy a container's settings; logged once for each reason: ` +
		`container=a reason="ulimit nofile is 1"
localecs run: warning: twice
localecs run: warning: twice
localecs run x: error: no answer: error="a: b"
`
	testkit.Equal(t, "text", stderr.String(), want)
}

package meshinit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/envoy"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// gatePause is the time between two looks at the volume and the proxy in the first second;
	// later it is a share of the time waited, at most longGatePause. Where many tasks
	// start at once on one host, a look every 20 ms of each container cost as much CPU as
	// the agents and proxies that they wait for.
	gatePause      = 20 * time.Millisecond
	gatePauseShare = 50
	longGatePause  = 200 * time.Millisecond
	// unknownTaskPause and taskPause lie between two reads of the metadata, before
	// and after the first valid answer.
	unknownTaskPause = 250 * time.Millisecond
	taskPause        = time.Second
	// dialLimit bounds one connection to the proxy.
	dialLimit = time.Second
	// gateLogPause is the time between two log lines of one wait.
	gateLogPause = 10 * time.Second
	// failureTime is how much longer than its limit mesh-init may take to report that a
	// step failed: a login that was sent is answered within 60 s, and it undoes its work.
	failureTime = 80 * time.Second
	// lastReadLimit bounds the read of the metadata when the wait is over before the first.
	lastReadLimit = time.Second
)

// Gate is what a container of the task waits for before its work: the success of
// mesh-init, or a proxy that accepts connections. ECS starts the container without
// waiting, because each dependsOn condition costs up to 5 s.
type Gate struct {
	// Dir is the bootstrap directory, with the status that mesh-init writes.
	Dir string
	// Metadata reads the task. A status that belongs to another task does not count.
	Metadata Metadata
	// Proxy is the host:port of listeners of the proxy, or http://host:port/path of what
	// answers 200 when it is ready. If there are any, the gate opens when all of them
	// accept connections or answer, and of mesh-init only the failure counts.
	Proxy []string
	// Limit is how long mesh-init may stay at one step, and the whole wait may take
	// once mesh-init has succeeded. A status of success that lacks only the metadata to
	// compare it with is waited for without a limit.
	Limit time.Duration
	Log   hclog.Logger
}

// Wait returns nil when the gate is open. It returns an error when mesh-init has
// failed, with its message, when the limit has passed, and when ctx ends.
func (g Gate) Wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := waiter{gate: g, start: time.Now(), progress: time.Now(), tasks: make(chan workload.Task)}
	go w.readTasks(ctx)
	for {
		if open, err := w.look(ctx); open || err != nil {
			return err
		}
		if err := w.checkProgress(time.Now()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			// mesh-init may have succeeded since the last look, or before the first: then its
			// token and its registration are the caller's to take back.
			w.learnTask(ctx)
			if open, _ := w.look(ctx); open {
				return nil
			}
			return fmt.Errorf("wait for the start of the task: %w", context.Cause(ctx))
		case w.task = <-w.tasks:
		case <-time.After(w.pause()):
		}
	}
}

// pause returns the time until the next look.
func (w *waiter) pause() time.Duration {
	return min(max(gatePause, time.Since(w.start)/gatePauseShare), longGatePause)
}

// waiter is one wait at a gate.
type waiter struct {
	gate  Gate
	start time.Time
	// tasks delivers valid metadata answers, and task is the last one.
	tasks chan workload.Task
	task  workload.Task
	// status is the last one of this task, and progress when it came.
	status   status
	progress time.Time
	// unproven reports that the status is one of success, and the task is not known:
	// it is this task's, which runs, or one that an earlier task has left.
	unproven bool
	// missing is what the gate waits for, and logged when that was last logged.
	missing string
	logged  time.Time
}

// readTasks reads the metadata until ctx ends. A failed read means nothing.
func (w *waiter) readTasks(ctx context.Context) {
	pause := unknownTaskPause
	for {
		if task, err := w.gate.Metadata.Task(ctx); err == nil {
			pause = taskPause
			select {
			case w.tasks <- task:
			case <-ctx.Done():
			}
		}
		if retry.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// learnTask reads the task once if it is not known yet, although ctx has ended.
func (w *waiter) learnTask(ctx context.Context) {
	if w.task.TaskARN != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastReadLimit)
	defer cancel()
	if task, err := w.gate.Metadata.Task(ctx); err == nil {
		w.task = task
	}
}

// look reports whether the gate is open, or why it never will be.
func (w *waiter) look(ctx context.Context) (open bool, err error) {
	w.missing = w.readOwnStatus()
	switch w.status.Outcome {
	case failed:
		return false, fmt.Errorf("mesh-init failed: %s", w.status.Message)
	case ready:
		open = true
	default:
		if open, err = w.meshInitEnded(); err != nil {
			return false, err
		}
	}
	if len(w.gate.Proxy) > 0 {
		// Before mesh-init has succeeded, the proxy of this task has no configuration.
		open = w.status.Outcome != starting && w.proxyAccepts(ctx)
	}
	if open && !w.logged.IsZero() {
		w.gate.Log.Info("finished waiting", logkey.Elapsed, time.Since(w.start).Round(time.Millisecond))
	}
	return open, nil
}

// readOwnStatus updates the status and returns what is missing.
func (w *waiter) readOwnStatus() string {
	s, err := readStatus(w.gate.Dir)
	w.unproven = err == nil && s.Outcome == ready && w.task.TaskARN == ""
	path := filepath.Join(w.gate.Dir, workload.FileStatus)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path + ", which mesh-init writes"
	case err != nil:
		return err.Error()
	case w.task.TaskARN == "":
		return "task metadata, to compare with " + path
	case s.Task != w.task.TaskARN:
		return path + " of this task, it has that of " + s.Task
	case s != w.status:
		w.status, w.progress = s, time.Now()
	}
	return "mesh-init: " + s.Message
}

// meshInitEnded decides by the status of ECS about a mesh-init without an outcome: one of an
// earlier version, or one that could not write it. ECS could not start one that stopped
// without an exit code.
func (w *waiter) meshInitEnded() (open bool, err error) {
	for _, c := range w.task.Containers {
		switch {
		case c.Name != workload.ContainerMeshInit || c.KnownStatus != workload.StatusStopped:
		case c.ExitCode == nil:
			return false,
				fmt.Errorf("mesh-init failed: ECS did not start container %s, the stopped task's containers[].reason "+
					"has the cause", c.Name)
		case *c.ExitCode != 0:
			return false, fmt.Errorf("mesh-init failed: container %s has exit code %d, its log has the reason",
				c.Name, *c.ExitCode)
		default:
			return true, nil
		}
	}
	return false, nil
}

// proxyAccepts reports whether every listener accepts a connection.
func (w *waiter) proxyAccepts(ctx context.Context) bool {
	for _, address := range w.gate.Proxy {
		if err := accepts(ctx, address); err != nil {
			if w.status.Outcome == ready {
				w.missing = "the proxy's listener: " + err.Error()
			}
			return false
		}
	}
	return true
}

// accepts returns nil when there is a listener at the address, or 200 from the URL.
func accepts(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	if rest, ok := strings.CutPrefix(address, "http://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		_, err := envoy.Ask(ctx, http.MethodGet, host, "/"+path)
		return err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// checkProgress logs what is missing, and gives up when nothing has changed for the
// limit. A container of a running task that ECS starts again while its metadata cannot be
// read waits on: its end would mend nothing, and may be that of the task.
func (w *waiter) checkProgress(now time.Time) error {
	limit := w.gate.Limit
	if w.status.Outcome == starting { // mesh-init's own message is the better one
		limit += failureTime
	}
	keepsWaiting := w.unproven && len(w.gate.Proxy) == 0
	if elapsed := now.Sub(w.progress); elapsed >= limit && !keepsWaiting {
		return fmt.Errorf("gave up after %s: still missing: %s", now.Sub(w.start).Round(time.Millisecond), w.missing)
	}
	// The first line waits for the metadata, if that answers, to name the true reason.
	first := w.logged.IsZero() && (w.task.TaskARN != "" || now.Sub(w.start) >= taskPause)
	if first || !w.logged.IsZero() && now.Sub(w.logged) >= gateLogPause {
		w.gate.Log.Info("waiting", logkey.Missing, w.missing, logkey.Elapsed, now.Sub(w.start).Round(time.Millisecond))
		w.logged = now
	}
	return nil
}

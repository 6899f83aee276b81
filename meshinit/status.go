package meshinit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/meshtask/consul-ecs/internal/failure"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/workload"
)

// modeStatus lets every container of the task read the status, which holds no
// secret.
const modeStatus = 0o644

// outcome is how far mesh-init has come.
type outcome string

const (
	starting outcome = "starting"
	ready    outcome = "ready"
	failed   outcome = "failed"
)

// status is what mesh-init reports to the other containers of its task, in
// workload.FileStatus. The volume may have one of an earlier task.
type status struct {
	// Task is the ARN of the task that it is about.
	Task    string  `json:"task"`
	Outcome outcome `json:"outcome"`
	// Message is the step under way, or why mesh-init failed.
	Message string `json:"message,omitempty"`
}

// readStatus returns the status in dir.
func readStatus(dir string) (status, error) {
	path := filepath.Join(dir, workload.FileStatus)
	data, err := os.ReadFile(path)
	if err != nil {
		return status{}, err
	}
	var s status
	if err := json.Unmarshal(data, &s); err != nil {
		return status{}, fmt.Errorf("parse %s: %w", path, err)
	}
	return s, nil
}

// Outcome returns what mesh-init has reported in dir: starting, ready or failed, and the step under way or the reason.
func Outcome(dir string) (outcome, message string, err error) {
	s, err := readStatus(dir)
	return string(s.Outcome), s.Message, err
}

// write writes the status to dir.
func (s status) write(dir string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return volume.Write(filepath.Join(dir, workload.FileStatus), append(data, '\n'), modeStatus, volume.KeepGroup)
}

// report writes the status, unless an earlier run of the task was ready: its
// containers run, and a second run changes nothing for them.
func (r *run) report(o outcome, message string) error {
	if r.task.TaskARN == "" || r.wasReady {
		return nil
	}
	if r.reporting != nil {
		<-r.reporting
	}
	return status{r.task.TaskARN, o, message}.write(r.options.Config.BootstrapDir)
}

// stepReportAfter is how long a step takes before the status names it.
// Writing each of them was a tenth of mesh-init's processor time.
const stepReportAfter = 100 * time.Millisecond

// reportStep names the step under way to the containers that wait, the first one at once
// and each other if it lasts, until end, which does not wait for a volume that hangs. It is
// no reason to fail: the status that counts is the last one.
func (r *run) reportStep(name string) (end func()) {
	if r.task.TaskARN == "" || r.wasReady {
		return func() {}
	}
	s, dir, log := status{r.task.TaskARN, starting, name}, r.options.Config.BootstrapDir, r.deps.Log
	write := func() {
		if err := s.write(dir); err != nil {
			log.Debug("status was not written", logkey.Step, name, logkey.Error, err)
		}
	}
	before, written := r.reporting, make(chan struct{})
	if before == nil {
		r.reporting = written
		close(written)
		write()
		return func() {}
	}
	timer := time.AfterFunc(stepReportAfter, func() {
		defer close(written)
		<-before
		write()
	})
	return func() {
		if !timer.Stop() {
			r.reporting = written
		}
	}
}

// reportReady reports the outcome. It is no step, since the report of a step that lasts could replace the outcome.
func (r *run) reportReady(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("write status: %w", context.Cause(ctx))
	}
	return r.report(ready, "")
}

// reportFailure ends the wait of the other containers. A run that failed before it
// knew its task asks once more for it.
func (r *run) reportFailure(ctx context.Context, cause error) {
	var err error
	if r.task.TaskARN == "" {
		if r.task, err = r.deps.Metadata.Task(context.WithoutCancel(ctx)); err == nil {
			r.findEarlierRun()
		}
	}
	if err == nil {
		err = r.report(failed, failure.Mark(cause.Error()))
	}
	if err != nil {
		r.deps.Log.Warn("the containers that wait for this one were not notified of its failure", logkey.Error, err)
	}
}

// findEarlierRun looks for an earlier run of the same task.
func (r *run) findEarlierRun() {
	s, err := readStatus(r.options.Config.BootstrapDir)
	r.wasReady = err == nil && s.Task == r.task.TaskARN && s.Outcome == ready
}

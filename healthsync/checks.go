package healthsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// checkWriter writes the checks to Consul, and repeats what has failed.
type checkWriter struct {
	options Options
	deps    Deps
	task    *taskState
	token   *serviceToken

	// last and failing are by check ID.
	last      map[string]written
	failing   map[string]failure
	causes    retry.Causes
	readBacks readBacks
	pacer     pacer
	// logged is what the log has last, by check ID.
	logged map[string]written
	// unbound is why the checks would outlive this process, if they would.
	unbound string
}

// failure is a write that has failed.
type failure struct {
	class  retry.Class
	change change
}

// dropReverted drops failed writes of statuses that have gone again, which may yet be
// applied.
func (w *checkWriter) dropReverted(now time.Time, changes []change) {
	for id, failed := range w.failing {
		changed := slices.ContainsFunc(changes, func(c change) bool { return c.check.ID == id && !c.refresh })
		if failed.change.refresh || changed {
			continue
		}
		delete(w.failing, id)
		w.readBacks.wrote(now)
	}
}

// refresh returns the time between two writes of the same status, and whether they are to be read back.
func (w *checkWriter) refresh(now time.Time) (refresh time.Duration, readBack bool) {
	refresh = w.deps.Registrar.Refresh()
	if w.readBacks.next(now) {
		return 0, true
	}
	return refresh, false
}

// apply makes the changes, unless they wait for the end of a pause after a failure.
func (w *checkWriter) apply(ctx context.Context, now time.Time, readBack bool, changes []change) {
	if len(changes) == 0 {
		return
	}
	for i := range changes {
		changes[i].readBack = readBack && changes[i].refresh
	}
	if w.pacer.holds(now, changes) {
		w.postpone(changes)
		return
	}
	w.token.reload() // a login may have replaced it
	results := w.write(ctx, changes...)
	w.pace(now, changes, results)
	for i, result := range results {
		w.record(ctx, now, changes[i], result)
		w.logUnbound(result.Unbound)
	}
}

// postpone records the statuses that wait for the end of a pause: they are to be written, also
// when the metadata are lost meanwhile.
func (w *checkWriter) postpone(changes []change) {
	for _, c := range changes {
		if !c.refresh {
			w.failing[c.check.ID] = failure{w.failing[c.check.ID].class, c}
		}
	}
}

// pace decides when to read the checks back, and when to repeat what has failed. Without an
// agent nothing expires that a refresh keeps, so one that failed waits for the next.
func (w *checkWriter) pace(now time.Time, changes []change, results []registrar.Result) {
	again, wrote := false, false
	for i, result := range results {
		c := changes[i]
		if result.Unsure {
			w.readBacks.unanswered = true
		}
		if c.readBack && result.Err != nil {
			w.readBacks.failed(now)
		}
		switch {
		case result.Err == nil:
			wrote = wrote || !c.refresh
		case c.refresh && w.options.Config.Agentless():
			w.last[c.check.ID] = written{container: c.container, observed: c.previous, at: now}
		default:
			again = true
		}
	}
	w.pacer.record(now, changes, again)
	if wrote || !again && w.readBacks.unanswered {
		w.readBacks.wrote(time.Now())
	}
}

// write makes the changes, and has a result for each.
func (w *checkWriter) write(ctx context.Context, changes ...change) []registrar.Result {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	updates := make([]registrar.Update, len(changes))
	for i, c := range changes {
		updates[i] = c.update()
	}
	return w.deps.Registrar.Set(ctx, w.token.secret, w.task.workload, updates)
}

// logUnbound logs once why checks would outlive this process, and when they no longer
// do.
func (w *checkWriter) logUnbound(why error) {
	reason := ""
	if why != nil {
		reason = why.Error()
	}
	switch {
	case reason == w.unbound:
		return
	case reason != "":
		w.task.log.Warn("checks keep their status if health-sync dies, until the controller removes the task",
			logkey.Reason, reason)
	default:
		w.task.log.Info("checks become critical if health-sync dies")
	}
	w.unbound = reason
}

// record remembers the outcome of a write. A failed one is not remembered, so
// the next diff asks for it again; it is logged when it starts to fail, when
// the kind of failure changes, every 10 s while it lasts, and when it works again.
func (w *checkWriter) record(ctx context.Context, now time.Time, c change, result registrar.Result) {
	id := c.check.ID
	if result.Err != nil {
		w.recordFailure(ctx, c, result.Err)
		return
	}
	if result.Restored {
		w.task.log.Warn("consul had lost the check, registered it again", logkey.CheckID, id)
	}
	if _, failed := w.failing[id]; failed {
		w.task.log.Info("check write works again", logkey.CheckID, id)
		delete(w.failing, id)
	}
	w.last[id] = written{container: c.container, observed: c.observed, at: now}
	if c.refresh {
		return // logReasons tells of another reason
	}
	w.logged[id] = w.last[id]
	log := w.task.log.With(logkey.CheckID, id, logkey.Container, c.container)
	if !c.first { // otherwise only Consul knows
		log = log.With(logkey.Previous, c.previous.status())
	}
	log.Info("check status changed", logkey.Status, c.observed.status(), logkey.Reason, c.observed.output(c.container))
}

// reasonPause is the time between two logs of a reason that changes without its status.
const reasonPause = 10 * time.Second

// logReasons logs why checks have their status when that has changed alone: its write waits for a refresh.
func (w *checkWriter) logReasons(now time.Time, containers []workload.Container, serving map[string]bool) {
	checks := w.task.workload.SyncChecks
	for _, check := range checks {
		container, observed := decisive(check, checks, containers, serving)
		logged, known := w.logged[check.ID]
		same := logged.observed.status() == observed.status() && !logged.same(container, observed)
		if !known || !same || now.Sub(logged.at) < reasonPause {
			continue
		}
		w.logged[check.ID] = written{container: container, observed: observed, at: now}
		w.task.log.Info("check reason changed", logkey.CheckID, check.ID, logkey.Container, container,
			logkey.Status, observed.status(), logkey.Reason, observed.output(container))
	}
}

func (w *checkWriter) recordFailure(ctx context.Context, c change, err error) {
	id := c.check.ID
	class := consulutil.Classify(err)
	if ctx.Err() != nil {
		return // cut off by the signal, which is no failure
	}
	if w.token.renewal != nil && consulutil.UnknownToken(err) {
		w.token.renewal.Refused()
	}
	level := w.causes.Level(err)
	if before, failing := w.failing[id]; !failing || before.class != class {
		level = hclog.Warn
	}
	w.task.log.Log(level, "check write failed, trying again",
		logkey.CheckID, id, logkey.Status, c.observed.status(), logkey.Error, err)
	w.failing[id] = failure{class, c}
}

// dropContradicted drops failed writes that the ports contradict. A write of passing for what
// has ended is dropped as if refusing had been written, so that it is made when the port
// accepts.
func (w *checkWriter) dropContradicted(now time.Time, e *evidence) {
	for _, check := range w.task.workload.SyncChecks {
		failed := w.failing[check.ID].change
		state := e.state(check, w.task.workload.SyncChecks)
		switch {
		case failed.observed == refusing && state == alive:
		case failed.observed.status() == api.HealthPassing && state == dead && !failed.refresh:
			if before := w.last[check.ID]; before.observed.status() != api.HealthPassing {
				w.last[check.ID] = written{container: failed.container, observed: refusing, at: before.at}
			}
		default:
			continue
		}
		delete(w.failing, check.ID)
		w.readBacks.wrote(now)
	}
}

// critical returns the last change of a check.
func (w *checkWriter) critical(check workload.SyncCheck) change {
	return change{check: check, container: cmp.Or(w.last[check.ID].container, check.Container), observed: stopping}
}

// writeCritical writes critical for all checks. It repeats those that Consul has not taken, and
// beside them those that an agent may yet make passing.
func (w *checkWriter) writeCritical(ctx context.Context) error {
	var changes []change
	for _, check := range w.task.workload.SyncChecks {
		changes = append(changes, w.critical(check))
	}
	var refusals []error
	ambiguous := w.readBacks.ambiguous() && !w.options.Config.Agentless()
	err := w.lastWrite(ctx, "write critical", func(ctx context.Context) error {
		var repeats []change
		var errs []error
		for i, result := range w.write(ctx, changes...) {
			switch class := consulutil.Classify(result.Err); {
			case result.Err == nil, class == retry.Gone:
				// Gone: no check and no service, not even now. Nothing can take traffic.
				if ambiguous {
					repeats = append(repeats, changes[i])
				}
			case class == retry.Permanent:
				refusals = append(refusals, result.Err)
			default:
				repeats, errs = append(repeats, changes[i]), append(errs, result.Err)
			}
		}
		changes = repeats
		return errors.Join(errs...)
	})
	return errors.Join(append(refusals, err)...)
}

// lastWrite repeats a write until Consul has taken it, or refuses it. Its error is
// errAgentGone when an agent has refused connections for long enough.
func (w *checkWriter) lastWrite(ctx context.Context, what string, write func(context.Context) error) error {
	if w.options.Config.Agentless() {
		write = sparing(time.Second, remaining(ctx)/3, write)
	}
	var since time.Time // of the agent's refusals in a row
	attempt := func(ctx context.Context) error {
		err := write(ctx)
		switch {
		case !refused(err) || w.options.Config.Agentless():
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= goneAfter:
			return errAgentGone
		}
		return err
	}
	err := refusal(retry.Do(ctx, retry.LocalAgent(), w.task.log, what, consulutil.Classify, attempt))
	if err != nil {
		return fmt.Errorf("%s %q: %w", what, w.task.workload.ID, err)
	}
	return nil
}

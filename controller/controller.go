package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// setupAgain is how long after a successful setup the leader checks whether
	// another process has changed what it made. It writes only if so.
	setupAgain = 10 * time.Minute
	// setupReminder is how often a failure of setup that lasts is logged as an error.
	setupReminder = 5 * time.Minute
)

// Leader is the lock of a cluster; *Lock is one.
type Leader interface {
	Lead(ctx context.Context, standby func(holder string) error, lead func(context.Context) error) error
}

// Setup makes what tasks need to log in; *setup.Setup does. A *retry.PermanentError
// means that Consul refuses the controller as a whole; any other is retried.
type Setup interface {
	Ensure(context.Context) ([]setup.Write, error)
}

// cleaner removes what dead tasks left; *Cleaner does. An error of Pass means that it
// could not look everywhere; the report is still valid.
type cleaner interface {
	Forget()
	Pass(context.Context) (Report, error)
}

// Options are what a controller works with, and how fast.
type Options struct {
	// Interval is the pause between passes while there is something to do, and the
	// unit of the pause while there is nothing.
	Interval time.Duration
	// Rate is the budget of AWS calls per second, which Cleaner enforces.
	Rate    float64
	Lock    Leader
	Setup   Setup
	Cleaner cleaner
	Metrics *Metrics
	Log     hclog.Logger
}

// Controller is one controller of a cluster.
type Controller struct {
	Options
	health health
}

// New returns a controller, which is healthy at first.
func New(o Options) *Controller {
	c := &Controller{Options: o}
	c.health.succeeded(time.Now(), noLead)
	return c
}

// backOff returns the policy for setup and the lock, without a limit: a controller has nothing else
// to do.
func backOff() retry.Policy {
	return retry.Policy{Base: 250 * time.Millisecond, Max: 15 * time.Second}
}

// Run works until the context ends, which is no error. It returns a
// *retry.PermanentError when Consul refuses the lock or the first setup.
func (c *Controller) Run(ctx context.Context) error {
	for {
		err := retry.Do(ctx, backOff(), c.Log, "leadership", consulutil.Classify, c.leadOnce)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// leadOnce waits for leadership, and leads. It returns nil when leadership was lost: the
// next attempt may begin without back-off.
func (c *Controller) leadOnce(ctx context.Context) error {
	current := ""
	err := c.Lock.Lead(ctx, func(holder string) error {
		if c.health.succeeded(time.Now(), noLead); current != holder {
			c.Log.Info("waiting, another controller leads", logkey.Leader, holder)
			current = holder
		}
		return nil
	}, c.lead)
	var lost *consulutil.LeadershipLostError
	if errors.As(err, &lost) {
		c.Log.Warn("leadership lost", logkey.Error, lost.Err)
		return nil
	}
	return err
}

// lead works as long as this controller leads: setup when it is due, and beside it
// passes, which need nothing of what setup makes and do not wait for its lock. Its
// only error, beside the context's, is a permanent one of the first setup.
func (c *Controller) lead(ctx context.Context) error {
	c.Metrics.leader.Set(1)
	defer c.Metrics.resetLeaderGauges()
	defer c.health.setup(time.Time{}, nil)
	c.health.succeeded(time.Now(), firstPass)
	c.Log.Info("leadership acquired")
	c.Cleaner.Forget() // other leaders may have observed the tasks since
	ctx, end := context.WithCancelCause(ctx)
	due := make(chan struct{}, 1)
	var wg sync.WaitGroup
	wg.Go(func() { end(c.keepSetUp(ctx, due)) })
	c.keepClean(ctx, due)
	wg.Wait()
	return context.Cause(ctx)
}

// keepSetUp repeats setup, at once when it is due, until the context ends or the first one
// is refused.
func (c *Controller) keepSetUp(ctx context.Context, due <-chan struct{}) error {
	succeeded, failures, cause, reported := false, 0, "", time.Time{}
	var failing time.Time
	for {
		changes, err := c.Setup.Ensure(ctx)
		if ctx.Err() != nil {
			return ctx.Err() // not an error of setup
		}
		now, pause := time.Now(), setupAgain
		c.Metrics.setup(len(changes), err)
		c.health.setup(now, err)
		var refused *retry.PermanentError
		switch {
		case err == nil:
			if !succeeded || failures > 0 {
				c.Log.Info("setup complete")
			}
			succeeded, failures, cause = true, 0, ""
		case errors.As(err, &refused) && !succeeded:
			return err
		default:
			if failures++; failures == 1 {
				failing = now
			}
			pause = backOff().Pause(now.Sub(failing))
			log := c.Log.Debug
			if cause != err.Error() || now.Sub(reported) >= setupReminder {
				cause, reported, log = err.Error(), now, c.Log.Error
			}
			log("setup failed, trying again", logkey.Attempt, failures, logkey.RetryIn, pause.Round(time.Millisecond),
				logkey.Error, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-due:
		case <-time.After(pause):
		}
	}
}

// keepClean makes pass after pass until the context ends. Setup is due when one finds that
// the cluster's node is missing: the tasks' services went with it.
func (c *Controller) keepClean(ctx context.Context, due chan<- struct{}) {
	for pause := c.Interval; ; {
		var missing bool
		if pause, missing = c.onePass(ctx, pause); missing {
			select {
			case due <- struct{}{}:
			default: // it is due already
			}
		}
		if retry.Sleep(ctx, retry.Around(pause)) != nil {
			return
		}
	}
}

// onePass makes one pass, reports it, and returns the pause after it and whether the
// cluster's node is missing.
func (c *Controller) onePass(ctx context.Context, pause time.Duration) (next time.Duration, nodeMissing bool) {
	start := time.Now()
	r, err := c.Cleaner.Pass(ctx)
	c.Metrics.count(r)
	if ctx.Err() != nil {
		return pause, false // its error is that of the context
	}
	took := time.Since(start)
	next = c.pauseAfter(pause, r, err)
	c.report(r, err, took, next)
	return next, r.NodeMissing
}

// report writes a completed pass to metrics, log and health.
func (c *Controller) report(r Report, err error, took, next time.Duration) {
	now := time.Now()
	c.Metrics.pass(r, err, took, next, now)
	args := []any{logkey.Tasks, r.Running, logkey.Tokens, r.Tokens, logkey.Services, r.Services,
		logkey.Deleted, len(r.Deleted), logkey.Failed, len(r.Failed),
		logkey.Elapsed, took.Round(time.Millisecond), logkey.Next, next.Round(time.Millisecond)}
	switch {
	case err != nil:
		c.Log.Error("pass failed", append(args, logkey.Error, err)...)
		return
	case len(r.Deleted)+len(r.Failed) > 0:
		c.Log.Info("pass done", args...)
	default:
		c.Log.Debug("pass done", args...)
	}
	// Three intervals, each a pause and the duration of this pass.
	c.health.succeeded(now, 3*(max(next, c.Interval)+took))
}

package controller

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/controller/lease"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// setupAgain is how long after a successful setup the leader checks whether another
// process has changed what it made. It writes only if so.
const setupAgain = 10 * time.Minute

// Options set how fast a controller works.
type Options struct {
	// Interval is the pause between passes while there is something to do, and the
	// unit of the pause while there is nothing.
	Interval time.Duration
	// Rate is the budget of AWS calls per second; Pass enforces it.
	Rate float64
}

// Result is what one pass found and did.
type Result struct {
	// Tasks is the number of running tasks. Tokens and Services in Consul belong to
	// tasks of this cluster; Foreign ones resemble them and do not.
	Tasks, Tokens, Services, Foreign int
	// Kept counts the tasks that are not running and whose leftovers stay, by reason.
	Kept map[string]int
	// Deleted counts the deleted items, Failed those that could not be deleted.
	Deleted map[Deletion]int
	Failed  int
	// Again is how soon another pass may decide about a kept task, 0 if unknown.
	Again time.Duration
	// AWSCalls and Throttles are the cost of the pass.
	AWSCalls, Throttles int
}

// Deletion is what kind of item was deleted, and for what reason.
type Deletion struct{ Kind, Reason string }

// Lease is the lock of this cluster; *lease.Lock is one.
type Lease interface {
	Lead(ctx context.Context, standby func(holder string) error, lead func(context.Context) error) error
}

// Ports are what a controller works with.
type Ports struct {
	Lease Lease
	// Begin is called when leadership begins: others led since the last time, so what
	// this controller observed then is incomplete.
	Begin func()
	// Setup makes what tasks need to log in, logs what it changed, and returns how
	// many objects that were. Its error is a *retry.PermanentError if Consul refuses
	// the controller as a whole; any other is retried.
	Setup func(context.Context) (changed int, err error)
	// Pass looks for leftovers and deletes them. Its error means that it could
	// not look everywhere; the result is valid all the same.
	Pass func(context.Context) (Result, error)
	// Classify classifies errors of Lease.
	Classify func(error) retry.Class
	Metrics  *Metrics
	Log      hclog.Logger
}

// Controller is one controller of a cluster.
type Controller struct {
	Options
	Ports
	health health
}

// New returns a controller, which is healthy at first.
func New(o Options, p Ports) *Controller {
	c := &Controller{Options: o, Ports: p}
	c.health.succeeded(time.Now(), noLead)
	return c
}

// backOff is for setup and the lock, without a limit: a controller has nothing else
// to do.
func backOff() retry.Policy {
	return retry.Policy{Base: 250 * time.Millisecond, Max: 15 * time.Second}
}

// Run works until the context ends, which is no error. It returns a
// *retry.PermanentError when Consul refuses the lock or the first setup.
func (c *Controller) Run(ctx context.Context) error {
	for {
		err := retry.Do(ctx, backOff(), c.Log, "leadership", c.Classify, c.term)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// term waits for leadership, and leads. It returns nil when leadership was lost: the
// next term may begin without back-off.
func (c *Controller) term(ctx context.Context) error {
	leader := ""
	err := c.Lease.Lead(ctx, func(holder string) error {
		if c.health.succeeded(time.Now(), noLead); leader != holder {
			c.Log.Info("waiting, another controller leads", logkey.Leader, holder)
			leader = holder
		}
		return nil
	}, c.lead)
	var lost *lease.LostError
	if errors.As(err, &lost) {
		c.Log.Warn("leadership lost", logkey.Error, err)
		return nil
	}
	return err
}

// lead works as long as this controller leads: setup when it is due, and passes also
// while setup fails, as they need nothing of what it makes. Its only error, beside the
// context's, is a permanent one of the first setup.
func (c *Controller) lead(ctx context.Context) error {
	c.Metrics.setLeader()
	defer c.Metrics.resetLeaderGauges()
	defer c.health.setup(time.Time{}, nil)
	c.health.succeeded(time.Now(), firstPass)
	c.Log.Info("leading")
	c.Begin()
	var s setupState
	p := pace{Options: c.Options, pause: c.Interval}
	for pass := time.Now(); ; {
		if !time.Now().Before(s.due) {
			var err error
			if s, err = c.setUp(ctx, s); err != nil {
				return err
			}
		}
		if !time.Now().Before(pass) {
			p = c.onePass(ctx, p)
			pass = time.Now().Add(p.pause*8/10 + rand.N(p.pause*4/10+1))
		}
		next := pass
		if s.due.Before(pass) {
			next = s.due
		}
		if err := retry.Sleep(ctx, time.Until(next)); err != nil {
			return err
		}
	}
}

// setupReminder is how often a failure of setup that lasts is logged as an error.
const setupReminder = 5 * time.Minute

// setupState is the state of setup in one term.
type setupState struct {
	// due is when the next attempt is.
	due time.Time
	// failures counts the attempts since the last success; cause is the error that was
	// logged last, at reported.
	failures int
	cause    string
	reported time.Time
	// done means that setup has succeeded once.
	done bool
}

// setUp attempts setup once and schedules the next attempt. It returns an error that
// ends the term.
func (c *Controller) setUp(ctx context.Context, s setupState) (setupState, error) {
	changed, err := c.Setup(ctx)
	if ctx.Err() != nil {
		return s, ctx.Err() // not an error of setup
	}
	now := time.Now()
	c.Metrics.setup(changed, err)
	c.health.setup(now, err)
	var refused *retry.PermanentError
	switch {
	case err == nil:
		if !s.done || s.failures > 0 {
			c.Log.Info("setup complete")
		}
		return setupState{due: now.Add(setupAgain), done: true}, nil
	case errors.As(err, &refused) && !s.done:
		return s, err
	}
	s.failures++
	pause := backOff().Pause(s.failures)
	s.due = now.Add(pause)
	log := c.Log.Debug
	if s.cause != err.Error() || now.Sub(s.reported) >= setupReminder {
		s.cause, s.reported = err.Error(), now
		log = c.Log.Error
	}
	log("setup failed, trying again", logkey.Attempt, s.failures, logkey.RetryIn, pause.Round(time.Millisecond), logkey.Error, err)
	return s, nil
}

// onePass makes one pass, reports it, and returns the pace after it.
func (c *Controller) onePass(ctx context.Context, p pace) pace {
	start := time.Now()
	r, err := c.Pass(ctx)
	c.Metrics.count(r)
	if ctx.Err() != nil {
		return p // its error is that of the context
	}
	took := time.Since(start)
	p = p.after(r, err)
	c.report(r, err, took, p.pause)
	return p
}

// report writes a completed pass to metrics, log and health.
func (c *Controller) report(r Result, err error, took, next time.Duration) {
	now := time.Now()
	c.Metrics.pass(r, err, took, next, now)
	deleted := 0
	for _, n := range r.Deleted {
		deleted += n
	}
	args := []any{logkey.Tasks, r.Tasks, logkey.Tokens, r.Tokens, logkey.Services, r.Services, logkey.Deleted, deleted,
		logkey.Failed, r.Failed, logkey.Elapsed, took.Round(time.Millisecond), logkey.Next, next.Round(time.Millisecond)}
	switch {
	case err != nil:
		c.Log.Error("pass failed", append(args, logkey.Error, err)...)
		return
	case deleted+r.Failed > 0:
		c.Log.Info("pass done", args...)
	default:
		c.Log.Debug("pass done", args...)
	}
	c.health.succeeded(now, c.allowed(next, took))
}

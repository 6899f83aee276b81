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

// setupAgain is how long after a set-up the leader looks whether somebody has
// changed what it made. It writes only if so.
const setupAgain = 10 * time.Minute

// Options say how fast a controller is.
type Options struct {
	// Interval is the pause between passes while there is something to do; it is
	// the unit of every other pause.
	Interval time.Duration
	// Rate is the budget of AWS calls a second, which Pass keeps by itself.
	Rate float64
}

// Result is what one pass found and did.
type Result struct {
	// Tasks run; Tokens and Services in Consul are of this cluster's tasks,
	// Foreign ones look alike and are not.
	Tasks, Tokens, Services, Foreign int
	// Kept are the tasks that do not run and whose leftovers stay, by why.
	Kept map[string]int
	// Deleted are the items that are gone, Failed those that could not be deleted.
	Deleted map[Deletion]int
	Failed  int
	// Again is how soon another look may decide about a kept task; 0 is nothing
	// to look forward to.
	Again time.Duration
	// AWSCalls and Throttles are what the pass spent.
	AWSCalls, Throttles int
}

// Deletion says what was deleted, and why.
type Deletion struct{ Kind, Reason string }

// Lease is the lock of this cluster; *lease.Lock is one.
type Lease interface {
	Lead(ctx context.Context, standby func(holder string) error, lead func(context.Context) error) error
}

// Ports are what a controller works with.
type Ports struct {
	Lease Lease
	// Begin is called when a lead begins: what this controller saw in an earlier one
	// is not the whole story, as others led since.
	Begin func()
	// Setup makes what tasks need, logs what it changed, and says how much.
	Setup func(context.Context) (changed int, err error)
	// Pass looks for leftovers and deletes them. Its error means that it could
	// not look everywhere; the result holds all the same.
	Pass func(context.Context) (Result, error)
	// Classify judges errors of Lease and Setup.
	Classify func(error) retry.Class
	Metrics  *Metrics
	Log      hclog.Logger
}

// Controller is one of a cluster's.
type Controller struct {
	Options
	Ports
	health health
}

// New returns a controller that is healthy until it should have succeeded.
func New(o Options, p Ports) *Controller {
	c := &Controller{Options: o, Ports: p}
	c.health.good(time.Now(), noLead)
	return c
}

// backOff is for set-up and the lock: for ever, as a controller has nothing else
// to do.
func backOff() retry.Policy {
	return retry.Policy{Base: 250 * time.Millisecond, Max: 15 * time.Second}
}

// Run works until the context ends, which is no error. What Consul refuses for
// good ends it too, with a *retry.PermanentError.
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

// term waits to lead, and leads. It has no error when the lead was lost: then
// there is no reason to back off.
func (c *Controller) term(ctx context.Context) error {
	waits := ""
	err := c.Lease.Lead(ctx, func(holder string) error {
		if c.health.good(time.Now(), noLead); waits != holder {
			c.Log.Info("waiting, as another controller leads", logkey.Leader, holder)
			waits = holder
		}
		return nil
	}, c.lead)
	var lost *lease.LostError
	if errors.As(err, &lost) {
		c.Log.Warn("lead lost", logkey.Error, err)
		return nil
	}
	return err
}

// lead works as long as this controller leads. Its only error is a refusal.
func (c *Controller) lead(ctx context.Context) error {
	c.Metrics.leads()
	defer c.Metrics.waits()
	c.health.good(time.Now(), firstPass)
	c.Log.Info("leading")
	c.Begin()
	err := retry.Do(ctx, backOff(), c.Log, "set-up", c.Classify, c.setUp)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	}
	c.Log.Info("set-up done")
	return c.passes(ctx)
}

func (c *Controller) setUp(ctx context.Context) error {
	changed, err := c.Setup(ctx)
	c.Metrics.setup(changed, err)
	return err
}

// passes makes them until the context ends.
func (c *Controller) passes(ctx context.Context) error {
	p := pace{Options: c.Options, pause: c.Interval}
	for setUp := time.Now(); ; {
		start := time.Now()
		r, err := c.Pass(ctx)
		c.Metrics.did(r)
		if ctx.Err() != nil {
			return ctx.Err() // whatever it says, we know why
		}
		took := time.Since(start)
		p = p.after(r, err)
		c.note(r, err, took, p.pause)
		if err := retry.Sleep(ctx, p.pause*8/10+rand.N(p.pause*4/10+1)); err != nil {
			return err
		}
		if time.Since(setUp) < setupAgain {
			continue
		}
		if err := c.setUp(ctx); err != nil && ctx.Err() == nil {
			c.Log.Warn("set-up failed, trying again later", logkey.RetryIn, setupAgain, logkey.Error, err)
		}
		setUp = time.Now()
	}
}

// note tells of a finished pass.
func (c *Controller) note(r Result, err error, took, next time.Duration) {
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
	c.health.good(now, c.allowed(next, took))
}

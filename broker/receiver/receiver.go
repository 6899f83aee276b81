package receiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/workload"
)

// revokeLimit is enough for the broker to answer three times.
const revokeLimit = 3*RevocationLimit + time.Second

// shutdownLimit is longer than the answer to a push can take.
const shutdownLimit = redeemLimit + readyLimit + 2*time.Second

// Options are what the user chooses.
type Options struct {
	// File is where the token is written; its directory exists.
	File string
	// Reader is a user who may read the file besides its owner; nil for none.
	Reader *uint32
	// Port is the callback port.
	Port int
	// Limit bounds the time until the first token.
	Limit time.Duration
	// Stay keeps the token valid until ctx ends. Without it Run returns with the first token.
	Stay bool
	// StopTimeout is the container's, in which everything after TERM is done.
	StopTimeout time.Duration
	// Ignore are containers that are no applications: Run does not wait for them to stop.
	Ignore workload.Ignored
}

// TokenActions are what the holder of a token can do with it. A nil function is what cannot be
// done with tokens of that backend. consulutil classifies its errors.
type TokenActions struct {
	// Alive reports whether the token exists.
	Alive func(context.Context, secret.Value) (bool, error)
	// Ready returns when the servers know a new token.
	Ready func(context.Context, secret.Value) error
	// Renew extends the token and returns its life from now.
	Renew func(context.Context, secret.Value) (time.Duration, error)
	// Revoke ends the token; one that has ended is a success. Without it the broker is
	// asked to.
	Revoke func(context.Context, secret.Value) error
}

// Deps are the dependencies of Run.
type Deps struct {
	// FirstTask reads the task, with retries until the limit, as awsutil.FirstTask.
	FirstTask func(ctx context.Context, limit time.Duration) (workload.Task, error)
	// Self is the name of this container, known after FirstTask.
	Self   func() string
	Client *Client
	// Actions are by the names in Unwrapped.Backend.
	Actions map[string]TokenActions
	// Listen opens the callback port.
	Listen func(ctx context.Context, port int) (net.Listener, error)
	// AwaitStopped waits until none of the containers that which picks is running, as
	// awsutil.AwaitStopped. With an error it returns the names of those that were.
	AwaitStopped func(ctx context.Context, which func(workload.Task) []workload.Container) (running []string, err error)
	Log          hclog.Logger
}

// receiver is one run. Only its goroutine uses it, except that a push is answered while
// obtain waits for it.
type receiver struct {
	opt     Options
	deps    Deps
	files   files
	task    workload.Task // without containers
	held    token
	retired []retired
	// dropped are the nonces of requests whose handle was lost, and when. The broker may have
	// made the token all the same: it must not take it for delivered.
	dropped map[string]time.Time

	// failing is since when attempts to replace the token have failed, zero if the last one has not.
	failing time.Time
	next    time.Time
	// looked is when the token was last seen to exist, or missing that often since.
	looked  time.Time
	missing int
}

// Run obtains a token and writes it to the file; with Stay it keeps that valid until ctx
// ends, and then revokes it.
func Run(ctx context.Context, o Options, deps Deps) error {
	r := &receiver{opt: o, deps: deps, files: files{o.File, o.Reader}, dropped: map[string]time.Time{}}
	if err := r.files.check(); err != nil {
		return &exit.UsageError{Err: err}
	}
	start := time.Now()
	var err error
	if r.task, err = deps.FirstTask(ctx, o.Limit); err != nil {
		return err
	}
	r.task.Containers = nil
	held, err := r.files.read(r.task.TaskARN)
	if err != nil {
		return &exit.UsageError{Err: err}
	}
	if held.valid(time.Now()) {
		r.held = held
		deps.Log.Info("using the token of an earlier run", logkey.Accessor, held.Accessor, logkey.Expires, held.end(),
			logkey.Path, o.File)
	} else if err := r.obtain(ctx, max(o.Limit-time.Since(start), time.Second)); err != nil {
		return err
	}
	if !o.Stay {
		return nil
	}
	return r.stay(ctx)
}

// obtain requests a token until it is written, and retires the one it replaces. The port
// is open before the first request, and closed when obtain returns.
func (r *receiver) obtain(ctx context.Context, limit time.Duration) error {
	listener, err := r.deps.Listen(ctx, r.opt.Port)
	if err != nil {
		return exit.Usagef("listen on the callback port %d; choose a free one by -callback-port: %w", r.opt.Port, err)
	}
	requests, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &delivery{
		receiver: r, start: time.Now(), ended: cancel, lines: rate.Sometimes{First: linesAtOnce, Interval: linePause},
		turn: make(chan struct{}, 1), dropped: make(chan error, 1), keys: map[string]Key{},
	}
	if r.held.valid(time.Now()) {
		d.bearer = r.held.secret
	}
	server := &http.Server{
		Handler: d, ReadTimeout: requestLimit, WriteTimeout: requestLimit + shutdownLimit, MaxHeaderBytes: MaxBody,
		ErrorLog: log.New(io.Discard, "", 0), // of callers that are not the broker
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	policy := retry.Policy{Base: time.Second, Max: 15 * time.Second, Limit: limit}
	if life := r.held.life(); life > 0 { // many attempts fit into the rest of a short life
		policy.Max = min(policy.Max, max(policy.Base, life/60))
	}
	err = retry.Do(requests, policy, r.deps.Log, "obtain a token", consulutil.Classify, d.attempt)
	// A push that arrived in time is answered before the port closes.
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer stop()
	if server.Shutdown(ending) != nil {
		_ = server.Close()
	}
	serving.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.obtained.secret.Empty() {
		return fmt.Errorf("obtain a token for task %s: %w", r.task.TaskARN, err)
	}
	if r.held.valid(time.Now()) {
		r.retired = append(r.retired, retired{r.held, time.Now().Add(r.held.overlap())})
	}
	r.held = d.obtained
	return nil
}

// retired is a token that was replaced, and when it is revoked.
type retired struct {
	token
	due time.Time
}

// revokeRetired revokes the replaced tokens whose overlap has passed.
func (r *receiver) revokeRetired(ctx context.Context) {
	now, before := time.Now(), len(r.retired)
	r.retired = slices.DeleteFunc(r.retired, func(t retired) bool {
		return !t.valid(now) || !now.Before(t.due) && r.revoke(ctx, t.token)
	})
	if len(r.retired) == 0 && before > 0 {
		r.held.Previous = nil
		r.recordHeld()
	}
	for i := range r.retired {
		if !now.Before(r.retired[i].due) {
			r.retired[i].due = now.Add(maxOverlap)
		}
	}
}

// recordHeld writes what is known about the token for a later run.
func (r *receiver) recordHeld() {
	if err := r.files.writeRecord(r.held); err != nil {
		r.deps.Log.Warn("a restarted container will not know what was done with the token", logkey.Accessor,
			r.held.Accessor, logkey.Error, err)
	}
}

// revoke ends a token and reports whether there is nothing more to do about it.
func (r *receiver) revoke(ctx context.Context, t token) bool {
	revoke := r.deps.Actions[t.Backend].Revoke
	if revoke == nil {
		revoke = r.deps.Client.revoke
	}
	err := retry.Do(ctx, retry.Remote().Within(revokeLimit), r.deps.Log, "revoke the token", consulutil.Classify,
		func(ctx context.Context) error { return revoke(ctx, t.secret) })
	if errors.Is(err, errUnknownToken) {
		r.deps.Log.Warn("the broker does not know the token: it was revoked before, or its record is lost",
			logkey.Accessor, t.Accessor, logkey.Expires, t.end())
		return true
	}
	if err != nil {
		message := "token not revoked; it ends when it expires"
		if t.Expires.IsZero() {
			message = "token not revoked; the broker revokes it when the task has stopped"
		}
		r.deps.Log.Warn(message, logkey.Accessor, t.Accessor, logkey.Expires, t.end(), logkey.Error, err)
		_, refused := errors.AsType[*retry.PermanentError](err)
		return refused
	}
	r.deps.Log.Info("token revoked", logkey.Accessor, t.Accessor)
	return true
}

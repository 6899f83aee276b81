package healthsync

import (
	"context"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// renewalPoll is how often the file and the age of the token are looked at.
	renewalPoll = 5 * time.Second
	// overlap is how long a replaced token stays valid. Until then its users have taken
	// the new one: the relay of envoy-entrypoint after 7 s (it looks at the file every
	// 5 s, and leaves the servers 2 s to replicate the token), our own last write after
	// writeTimeout, 5 s. The rest is for a server that is slow to take a new stream.
	overlap = 15 * time.Second
	// renewalPause and renewalPauseMax bound the pauses after an attempt that failed.
	renewalPause, renewalPauseMax = 20 * time.Second, time.Minute
)

// renewal replaces the service token of a task without an agent before it expires, and
// logs out those that were replaced. Only its goroutine uses it until done is closed.
type renewal struct {
	Deps
	path string // of the token's file
	w    workload.Workload
	task workload.Task // without containers
	// direct reports that the users of the token follow its file. consul-dataplane does
	// not: then nothing is renewed.
	direct bool

	secret string // of the token in the file
	known  bool   // its life
	// due is when to log in anew, zero for never.
	due, expires time.Time
	retired      []*retired

	// next is when the next attempt may be made, after failures in a row since failing of
	// which the last had the reason failed.
	next    time.Time
	failing time.Time
	failed  reason

	// refused is set by others when Consul does not know the token in a write: it was
	// deleted, or Consul restored from an older snapshot.
	refused atomic.Bool
	done    chan struct{}
}

// retired is a token that is to be logged out when nothing uses it any more.
type retired struct {
	secret string
	since  time.Time
	warned bool
}

// reason is what an attempt failed at; each is logged once in a row of failures.
type reason string

const (
	unread     reason = "its expiration could not be read"
	unwritable reason = "its file cannot be replaced"
	noLogin    reason = "the login failed"
	expired    reason = "it has expired"
)

// keepToken starts the renewal of the service token, which ends with ctx.
func (s *syncer) keepToken(ctx context.Context) {
	if !s.login || !s.Config.Agentless() {
		return
	}
	task := s.first
	task.Containers = nil
	r := &renewal{
		Deps:   s.Deps,
		path:   filepath.Join(s.Config.BootstrapDir, workload.FileServiceToken),
		w:      s.w,
		task:   task,
		direct: s.Config.Direct(),
		secret: s.token,
		done:   make(chan struct{}),
	}
	s.renewal = r
	go func() {
		defer close(r.done)
		tick := time.NewTicker(renewalPoll)
		defer tick.Stop()
		for ctx.Err() == nil {
			r.step(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
}

// endRenewal returns the tokens that the renewal leaves to be logged out besides the one
// in the file. It waits for a login that is under way, whose token is one of them.
func (s *syncer) endRenewal(ctx context.Context) []string {
	if s.renewal == nil {
		return nil
	}
	select {
	case <-s.renewal.done:
	case <-ctx.Done():
		s.Log.Warn("a login was not answered in time; if it made a token, the controller will remove it")
		return nil
	}
	var secrets []string
	for _, t := range s.renewal.retired {
		secrets = append(secrets, t.secret)
	}
	return secrets
}

// step does what is due.
func (r *renewal) step(ctx context.Context) {
	r.adopt()
	r.logOutRetired(ctx)
	now := time.Now()
	due := !r.due.IsZero() && !now.Before(r.due)
	if r.refused.Swap(false) && r.direct && !due {
		r.known = false
	}
	if now.Before(r.next) {
		return
	}
	switch {
	case !r.known:
		err := r.learn(ctx)
		r.report(ctx, unread, err)
	case due:
		why, err := r.renew(ctx)
		r.report(ctx, why, err)
	}
}

// adopt takes over the token of a login of another process, such as a second mesh-init.
func (r *renewal) adopt() {
	found, err := volume.ReadSecret(r.path)
	if err != nil || found == "" || found == r.secret {
		return
	}
	r.Log.Info("another process has replaced the service token", logkey.Path, r.path)
	if r.direct {
		r.retire(r.secret)
	}
	r.secret, r.known, r.next = found, false, time.Time{}
}

// learn reads the token's life. A token that Consul does not know has expired, or was
// deleted by mistake: a new one is due.
func (r *renewal) learn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	token, err := r.ReadToken(ctx, r.secret)
	switch {
	case err != nil && r.direct && consulutil.UnknownToken(err):
		r.Log.Warn("consul does not know the service token, logging in again", logkey.Error, err)
		r.known, r.due, r.expires = true, time.Now(), time.Time{}
		return nil
	case err != nil:
		return err
	}
	r.use(token)
	log := r.Log.With(logkey.Accessor, token.Accessor, logkey.Expires, token.Expires)
	switch {
	case token.Expires.IsZero():
	case r.direct:
		log.Info("service token will be renewed before it expires", logkey.Next, time.Until(r.due).Round(time.Second))
	default:
		r.due = time.Time{}
		log.Warn("service token expires and is not renewed, because consul-dataplane keeps the token it started with: set proxy.mode to direct, or raise MaxTokenTTL of the auth method")
	}
	return nil
}

func (r *renewal) use(token consulutil.Token) {
	r.secret, r.known, r.due, r.expires = token.Secret, true, token.RenewAt(), token.Expires
}

// renew logs in and replaces the token's file. Whatever happens after the login, one of
// two tokens is left over.
func (r *renewal) renew(ctx context.Context) (reason, error) {
	if err := volume.CheckReplaceSecret(r.path); err != nil {
		return unwritable, err
	}
	asked := time.Now()
	token, err := r.LogIn(ctx, r.w, r.task)
	if err != nil {
		return noLogin, err
	}
	token = byOurClock(token, asked)
	now, err := volume.ReadSecret(r.path)
	if ctx.Err() != nil || err == nil && now != r.secret { // replaced while we logged in
		r.retire(token.Secret)
		return "", nil
	}
	if err := volume.ReplaceSecret(r.path, r.secret, []byte(token.Secret)); err != nil {
		r.retire(token.Secret)
		return unwritable, err
	}
	r.retire(r.secret)
	r.use(token)
	r.Log.Info("service token renewed", logkey.Accessor, token.Accessor, logkey.Expires, token.Expires)
	return "", nil
}

// byOurClock puts the life of a token that was made after asked on our clock, of which the
// servers' may differ: a short life would be over before it is renewed, or renewed without
// a pause.
func byOurClock(token consulutil.Token, asked time.Time) consulutil.Token {
	if !token.Expires.IsZero() {
		token.Expires = asked.Add(token.Expires.Sub(token.Created))
	}
	token.Created = asked
	return token
}

func (r *renewal) retire(secret string) {
	r.retired = append(r.retired, &retired{secret: secret, since: time.Now()})
}

// logOutRetired destroys tokens that have been out of use for the overlap, and tries
// again after another one.
func (r *renewal) logOutRetired(ctx context.Context) {
	r.retired = slices.DeleteFunc(r.retired, func(t *retired) bool {
		if time.Since(t.since) < overlap {
			return false
		}
		ctx, cancel := context.WithTimeout(ctx, logOutTimeout)
		defer cancel()
		err := r.LogOut(ctx, t.secret)
		switch {
		case err == nil:
			r.Log.Info("replaced service token logged out")
		case !t.warned:
			r.Log.Warn("replaced service token not logged out, trying again", logkey.Error, err)
			t.warned = true
		}
		t.since = time.Now()
		return err == nil
	})
}

// report logs an outcome and sets the pause after a failure.
func (r *renewal) report(ctx context.Context, why reason, err error) {
	if err == nil || ctx.Err() != nil {
		r.failing, r.failed = time.Time{}, ""
		return
	}
	now := time.Now()
	if r.failing.IsZero() {
		r.failing = now
	}
	pause := retry.Policy{Base: renewalPause, Max: renewalPauseMax}.Pause(now.Sub(r.failing))
	r.next = now.Add(pause)
	if !r.expires.IsZero() && now.After(r.expires) {
		why = expired
	}
	log := r.Log.Debug
	if why != r.failed {
		log = r.Log.Error
	}
	r.failed = why
	log("service token not renewed, trying again", logkey.Reason, string(why), logkey.Path, r.path, logkey.Expires, r.expires,
		logkey.RetryIn, pause.Round(time.Second), logkey.Error, err)
}

package registrar

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/volume"
)

const (
	// tokenPoll is how often the file and the age of the token are looked at.
	tokenPoll = 5 * time.Second
	// tokenOverlap is how long a replaced token stays valid. Until then its users have taken
	// the new one: the relay of envoy-entrypoint after 7 s (it looks at the file every
	// 5 s, and leaves the servers 2 s to replicate the token), a write of health-sync after
	// 5 s. The rest is for a server that is slow to take a new stream.
	tokenOverlap = 15 * time.Second
	// tokenPause and tokenPauseMax bound the pauses after an attempt that failed.
	tokenPause, tokenPauseMax = 20 * time.Second, time.Minute
	// tokenRequest bounds one read of a token and one logout.
	tokenRequest = 5 * time.Second
)

// Renewal replaces the token of a login before it expires, since Consul cannot prolong it:
// by another login, after which the users of the token move to the new one, and the old one
// is logged out. It also replaces a token that Consul no longer knows.
type Renewal struct {
	// Path is the file of the token, which its users read again. A replacement keeps its mode
	// and group.
	Path string
	// ReadOnce is why the users of the file do not read it again; empty if they do. Then the
	// file and its token are left alone, and a replacement is held in memory, for the caller.
	ReadOnce string
	// Separate reports that the first token is the caller's own, and not the file's.
	Separate bool
	// ReadToken returns the life of a token by our clock, LogIn obtains another one, and LogOut
	// destroys one; a token that is gone already is no error. With a token, LogIn returns
	// no error, even when ctx has ended meanwhile.
	ReadToken func(ctx context.Context, secret string) (consulutil.Token, error)
	LogIn     func(ctx context.Context) (consulutil.Token, error)
	LogOut    func(ctx context.Context, secret string) error
	// Use gives a new token to those who do not read the file; nil when there are none. It is
	// repeated until it succeeds, and the old token is valid until then.
	Use func(ctx context.Context, secret string) error
	Log hclog.Logger

	// secret is the token in use, and own is the one that is held in memory only.
	secret, own atomic.Pointer[string]
	cancel      context.CancelFunc
	done        chan struct{}
	// refused is set by Refused.
	refused atomic.Bool

	// What follows belongs to the goroutine of Start until done is closed.

	known bool // the token's life
	// due is when to log in anew, zero for never.
	due, expires time.Time
	// unused reports that Use has yet to take the token.
	unused  bool
	retired []*retiredToken

	// next is when the next attempt may be made, after failures in a row since failing of
	// which the last had the reason failed.
	next    time.Time
	failing time.Time
	failed  renewalFailure
}

// retiredToken is a token that is to be logged out when nothing uses it any more.
type retiredToken struct {
	secret string
	since  time.Time
	warned bool
}

// renewalFailure is what an attempt failed at; each is logged once in a row of failures.
type renewalFailure string

const (
	unread     renewalFailure = "its expiration could not be read"
	unwritable renewalFailure = "its file cannot be replaced"
	noLogin    renewalFailure = "the login failed"
	unused     renewalFailure = "its users did not take it"
	expired    renewalFailure = "it has expired"
)

// Start begins to renew the token of the secret, in a goroutine that ends with ctx or Stop.
func (r *Renewal) Start(ctx context.Context, secret string) {
	r.secret.Store(&secret)
	if r.Separate {
		r.own.Store(&secret)
	}
	r.done = make(chan struct{})
	ctx, r.cancel = context.WithCancel(ctx)
	go func() {
		defer close(r.done)
		tick := time.NewTicker(tokenPoll)
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

// Current returns the secret of the token to present now: the one that is held in memory, else
// that in the file, which another process may have replaced.
func (r *Renewal) Current() string {
	if own := r.own.Load(); own != nil {
		return *own
	}
	if found, err := volume.ReadSecret(r.Path); err == nil && found != "" {
		return found
	}
	return *r.secret.Load()
}

// Refused reports a request that Consul refused because it does not know the token: it was
// deleted, has expired, or Consul was restored from an older snapshot.
func (r *Renewal) Refused() { r.refused.Store(true) }

// Stop ends the renewal, and returns the secrets that it leaves to be logged out besides the
// one in the file. It waits until ctx ends for a login that is under way, whose token is one of
// them.
func (r *Renewal) Stop(ctx context.Context) []string {
	r.cancel()
	select {
	case <-r.done:
	case <-ctx.Done():
		r.Log.Warn("a login was not answered in time; if it made a token, the controller will remove it")
		return nil
	}
	var secrets []string
	for _, t := range r.retired {
		secrets = append(secrets, t.secret)
	}
	if own := r.own.Load(); own != nil {
		secrets = append(secrets, *own)
	}
	return secrets
}

// step does what is due.
func (r *Renewal) step(ctx context.Context) {
	r.adopt()
	r.logOutRetired(ctx)
	now := time.Now()
	due := !r.due.IsZero() && !now.Before(r.due)
	if r.refused.Swap(false) {
		r.known = r.known && due
		r.next = time.Time{} // the servers answer
	}
	if now.Before(r.next) {
		return
	}
	switch {
	case !r.known:
		r.report(ctx, unread, r.learn(ctx))
	case due:
		why, err := r.renew(ctx)
		r.report(ctx, why, err)
	case r.unused:
		r.report(ctx, unused, r.use(ctx))
	}
}

// adopt takes over the token of a login of another process, such as a second mesh-init.
func (r *Renewal) adopt() {
	found, err := volume.ReadSecret(r.Path)
	if err != nil || found == "" || found == *r.secret.Load() || r.own.Load() != nil {
		return
	}
	r.Log.Info("another process has replaced the token", logkey.Path, r.Path)
	if r.ReadOnce == "" {
		r.retire(*r.secret.Load())
	}
	r.secret.Store(&found)
	r.known, r.next = false, time.Time{}
}

// learn reads the token's life. A token that Consul does not know has expired, or was
// deleted by mistake: a new one is due.
func (r *Renewal) learn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tokenRequest)
	defer cancel()
	token, err := r.ReadToken(ctx, *r.secret.Load())
	switch {
	case consulutil.UnknownToken(err):
		r.Log.Warn("consul does not know the token, logging in again", logkey.Path, r.Path, logkey.Error, err)
		r.known, r.due, r.expires = true, time.Now(), time.Time{}
		return nil
	case err != nil:
		return err
	}
	r.setLife(token)
	log := r.Log.With(logkey.Path, r.Path, logkey.Accessor, token.Accessor, logkey.Expires, token.Expires)
	switch {
	case token.Expires.IsZero():
	case r.ReadOnce == "", r.own.Load() != nil:
		log.Info("token will be renewed before it expires", logkey.Next, time.Until(r.due).Round(time.Second))
	default:
		log.Warn("token expires and is not renewed for its other users", logkey.Reason, r.ReadOnce)
	}
	return nil
}

// setLife records the life of the token in use.
func (r *Renewal) setLife(token consulutil.Token) {
	r.known, r.due, r.expires = true, token.RenewAt(), token.Expires
}

// renew logs in and replaces the token. Whatever happens after the login, one of two tokens is
// retired.
func (r *Renewal) renew(ctx context.Context) (renewalFailure, error) {
	if r.ReadOnce == "" {
		if err := volume.CheckReplaceSecret(r.Path); err != nil {
			return unwritable, err
		}
	}
	asked := time.Now()
	token, err := r.LogIn(ctx)
	if err != nil {
		return noLogin, err
	}
	token = byOurClock(token, asked)
	if ctx.Err() != nil {
		r.retire(token.Secret)
		return "", nil
	}
	if r.ReadOnce != "" {
		r.hold(token)
		return "", nil
	}
	now, err := volume.ReadSecret(r.Path)
	if err == nil && now != *r.secret.Load() { // replaced while we logged in
		r.retire(token.Secret)
		return "", nil
	}
	if err := volume.ReplaceSecret(r.Path, *r.secret.Load(), []byte(token.Secret)); err != nil {
		r.retire(token.Secret)
		return unwritable, err
	}
	r.retire(*r.secret.Load())
	r.replace(token)
	r.unused = r.Use != nil
	return unused, r.use(ctx)
}

// hold replaces the token in memory only.
func (r *Renewal) hold(token consulutil.Token) {
	if own := r.own.Load(); own != nil {
		r.retire(*own)
	}
	r.own.Store(&token.Secret)
	r.replace(token)
}

// replace makes the token the one in use.
func (r *Renewal) replace(token consulutil.Token) {
	r.secret.Store(&token.Secret)
	r.setLife(token)
	r.Log.Info("token renewed", logkey.Path, r.Path, logkey.Accessor, token.Accessor, logkey.Expires, token.Expires)
}

// use gives the token to those who do not read the file. The time of the tokens before begins
// when they have it.
func (r *Renewal) use(ctx context.Context) error {
	if !r.unused {
		return nil
	}
	err := r.Use(ctx, *r.secret.Load())
	r.unused = err != nil
	for _, t := range r.retired {
		t.since = time.Now()
	}
	return err
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

func (r *Renewal) retire(secret string) {
	r.retired = append(r.retired, &retiredToken{secret: secret, since: time.Now()})
}

// logOutRetired destroys tokens that have been out of use for the overlap, and tries
// again after another one.
func (r *Renewal) logOutRetired(ctx context.Context) {
	r.retired = slices.DeleteFunc(r.retired, func(t *retiredToken) bool {
		if r.unused || time.Since(t.since) < tokenOverlap {
			return false
		}
		ctx, cancel := context.WithTimeout(ctx, tokenRequest)
		defer cancel()
		err := r.LogOut(ctx, t.secret)
		switch {
		case err == nil:
			r.Log.Info("replaced token logged out", logkey.Path, r.Path)
		case !t.warned:
			r.Log.Warn("replaced token not logged out, trying again", logkey.Path, r.Path, logkey.Error, err)
			t.warned = true
		}
		t.since = time.Now()
		return err == nil
	})
}

// report logs an outcome and sets the pause after a failure.
func (r *Renewal) report(ctx context.Context, why renewalFailure, err error) {
	if err == nil || ctx.Err() != nil {
		r.failing, r.failed = time.Time{}, ""
		return
	}
	now := time.Now()
	if r.failing.IsZero() {
		r.failing = now
	}
	policy := retry.Policy{Base: tokenPause, Max: tokenPauseMax}
	if why == unused { // the old token is valid for a while only
		policy = retry.Policy{Base: tokenPoll, Max: tokenPoll}
	}
	pause := policy.Pause(now.Sub(r.failing))
	r.next = now.Add(pause)
	if !r.expires.IsZero() && now.After(r.expires) {
		why = expired
	}
	log := r.Log.Debug
	if why != r.failed {
		log = r.Log.Error
	}
	r.failed = why
	log("token not renewed, trying again", logkey.Reason, string(why), logkey.Path, r.Path, logkey.Expires, r.expires,
		logkey.RetryIn, pause.Round(time.Second), logkey.Error, err)
}

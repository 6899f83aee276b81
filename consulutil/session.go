package consulutil

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// replicationLimit bounds WaitReplicated. Version 0.6 gave up after 2.1 s,
// which a server under load can exceed.
const replicationLimit = 10 * time.Second

// replicationPause and replicationPauseMax bound the time between two reads. Replication to
// a healthy server takes a few milliseconds, so the first read usually suffices.
const replicationPause, replicationPauseMax = 100 * time.Millisecond, 500 * time.Millisecond

const (
	// loginLimit is how long a login waits for its answer. The servers work for a client
	// that has gone, and its token has no owner: a queue of logins that are repeated sooner
	// than they are answered grows without end.
	loginLimit = time.Minute
	// lostPause is the least pause after a login without an answer, of which the token, if
	// there is one, cannot be looked up; at most twice as long.
	lostPause = 30 * time.Second
	// refusedPause is the same after a login that was refused: unlike the question for the
	// leader it is work for the servers, and for AWS.
	refusedPause = 500 * time.Millisecond
	// spreadFrom is how long a task has waited for the servers before it lets others go
	// first, and spreadMax the longest time over which those that have waited log in. The
	// longer an outage, the more tasks wait with it. A queue of loginLimit and spreadMax
	// together has no login that is given up.
	spreadFrom, spreadMax = 8 * time.Second, 41 * time.Second
)

// LogoutLimit bounds a logout with its retries when the context has no deadline;
// the controller removes the token later.
const LogoutLimit = 10 * time.Second

// Session is the login and logout of one container, with retries. Its methods
// are not safe for concurrent use.
type Session struct {
	// Servers returns a client for the address that logins go to. It is called
	// until it succeeds, since the CA file may appear late, and not again: each
	// client has its own connections, of which a server takes 200 from one address.
	Servers func() (*api.Client, error)
	// Bearer signs a login. It is called for each attempt, since signatures expire.
	Bearer func(context.Context) (string, error)
	// Limit bounds the attempts to log in: the last one begins before it, and is answered
	// within loginLimit.
	Limit time.Duration
	Log   hclog.Logger

	client *api.Client // the login's
}

// SignError is a login that failed before its request to Consul.
type SignError struct{ Err error }

func (e *SignError) Error() string { return "sign the login: " + e.Err.Error() }
func (e *SignError) Unwrap() error { return e.Err }

// Login logs in with retries, or takes the token of p.Previous again, and waits until the
// servers know it; p.Bearer is made here. The token is the caller's to log out, also with an
// error: it is that of the login when the wait failed or ctx has ended in the meantime, and
// that of p.Previous, without its accessor, when no login succeeded. The error of what was
// given up names what to check.
func (s *Session) Login(ctx context.Context, p LoginParams) (Token, error) {
	token := Token{Secret: p.Previous}
	var w wait
	err := retry.Do(ctx, retry.Remote().Within(s.Limit), s.Log, "log in", Classify, func(ctx context.Context) error {
		w.begin()
		got, err := s.login(ctx, &p, w)
		if err != nil {
			w.failed(err, s.client != nil)
			return err
		}
		token = got
		return nil
	})
	if err != nil {
		return token, Remedy(err, "log in", loginRemedy(err))
	}
	text := "logged in"
	if token.Secret == p.Previous {
		text = "reusing the token of the previous run"
	}
	s.Log.Info(text, logkey.AuthMethod, p.Method, logkey.Accessor, token.Accessor)
	return token, WaitReplicated(ctx, s.client, token.Secret, s.Log)
}

// loginRemedy returns what to check when a login was given up; the error of a refusal
// has its remedy already.
func loginRemedy(err error) string {
	_, unsigned := errors.AsType[*SignError](err)
	switch {
	case unsigned:
		return "check taskRoleArn in the task definition and that this task can reach its credentials and STS"
	case Status(err) != 0:
		return ""
	}
	return "check consulServers or consulHTTPAddr, for client-entrypoint -consul-http-addr, and that this task can " +
		"reach the Consul servers"
}

// wait is the time that a login waits for the servers, as others do that they do not serve.
type wait struct {
	since time.Time // zero before the first attempt
	last  time.Time // the last attempt's end; zero before
	pause time.Duration
}

// begin notes the beginning of an attempt.
func (w *wait) begin() {
	now := time.Now()
	if w.since.IsZero() {
		w.since = now
	}
	if !w.last.IsZero() {
		w.pause = now.Sub(w.last)
	}
}

// failed notes the end of an attempt; asked reports that there was a client to ask the servers.
// The wait begins anew when this task waits for something else than the servers, such as a CA file
// of another container, and after a login without an answer: that pause is a spread, too.
func (w *wait) failed(err error, asked bool) {
	if !asked || !waitsForServers(err) {
		*w = wait{}
		return
	}
	w.last = time.Now()
}

// waitsForServers reports whether other tasks fail in the same way, until the servers serve.
func waitsForServers(err error) bool {
	_, unsigned := errors.AsType[*SignError](err)
	switch {
	case unsigned, isUnanswered(err), errors.Is(err, fs.ErrNotExist):
		return false
	}
	return Status(err) == 0 || busy(err)
}

// spread returns the time over which tasks that have waited as long log in from now on.
// A task that noticed late, after a long pause, has less of it left; measured, three quarters of
// its pause make the logins of a fleet come at an even pace (TestFleetLogsInAfterAnOutage).
func (w *wait) spread() time.Duration {
	return max(0, min(2*(time.Since(w.since)-spreadFrom), spreadMax)-w.pause*3/4)
}

// busy reports whether the answer is that of servers that cannot serve now.
func busy(err error) bool {
	return Status(err) == http.StatusTooManyRequests || Status(err) >= http.StatusInternalServerError
}

// login makes one attempt. It asks for the servers' leader first: a login to servers that
// cannot serve it would have to be waited for.
func (s *Session) login(ctx context.Context, p *LoginParams, w wait) (Token, error) {
	var err error
	if s.client == nil {
		if s.client, err = s.Servers(); err != nil {
			return Token{}, err
		}
	}
	if err := HasLeader(ctx, s.client); err != nil {
		return Token{}, explainLogin(p.Method, err)
	}
	if err := s.letOthersGoFirst(ctx, w.spread()); err != nil {
		return Token{}, err
	}
	if p.Previous != "" {
		if token, err := resume(ctx, s.client, *p); err != nil || token.Secret != "" {
			return token, err
		}
		p.Previous = ""
	}
	if p.Bearer, err = s.Bearer(ctx); err != nil {
		return Token{}, &SignError{err}
	}
	token, err := Login(WithLimit(ctx, loginLimit), s.client, *p)
	switch {
	case isUnanswered(err):
		s.Log.Warn("login was not answered; if it made a token, the controller will remove it",
			logkey.AuthMethod, p.Method)
		err = delayed(ctx, err, lostPause)
	case busy(err): // and so for the whole fleet
		err = delayed(ctx, err, max(refusedPause, min(time.Since(w.since), spreadMax)/2))
	case err != nil:
		err = delayed(ctx, err, refusedPause)
	}
	return token, err
}

// delayed returns an error after which the pause is between least and twice that, or ends
// before ctx: an attempt that begins in time is made.
func delayed(ctx context.Context, err error, least time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok {
		least = max(0, min(least, time.Until(deadline)/2))
	}
	return &retry.DelayError{Err: err, Delay: least + rand.N(least+1)}
}

// letOthersGoFirst waits for a random part of the spread, but not beyond the end of ctx.
func (s *Session) letOthersGoFirst(ctx context.Context, spread time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok {
		spread = min(spread, time.Until(deadline))
	}
	if spread <= 0 {
		return nil
	}
	pause := rand.N(spread)
	s.Log.Info("the Consul servers answer again, logging in after a pause for other tasks that have waited",
		logkey.RetryIn, pause.Round(time.Millisecond))
	return retry.Sleep(ctx, pause)
}

// WaitReplicated returns when a server chosen without regard to leadership
// knows the token. Without it the local agent could ask a server that is behind,
// and cache for a while that there is no such token. The error is a
// *retry.GaveUpError after replicationLimit and a *retry.PermanentError for a
// refusal.
func WaitReplicated(ctx context.Context, c *api.Client, secret string, log hclog.Logger) error {
	policy := retry.Policy{Base: replicationPause, Max: replicationPauseMax, Limit: replicationLimit}
	err := retry.Do(ctx, policy, log, "read the new token", ClassifyNewToken, func(ctx context.Context) error {
		opts := (&api.QueryOptions{Token: secret, AllowStale: true}).WithContext(ctx)
		if _, _, err := c.ACL().TokenReadSelf(opts); err != nil {
			return fmt.Errorf("read the new token: %w", err)
		}
		return nil
	})
	return Remedy(err, "wait for token replication", "check the health of the Consul servers")
}

// Logout logs a token out, with retries until the deadline of ctx; one without a
// deadline has LogoutLimit. At a task's end the servers may be back a second before
// KILL.
func (s *Session) Logout(ctx context.Context, secret string) error {
	policy := retry.Remote().Within(LogoutLimit)
	if _, limited := ctx.Deadline(); limited {
		policy.Limit = 0
	}
	return retry.Do(ctx, policy, s.Log, "log out", Classify, func(ctx context.Context) error {
		if s.client == nil { // no login got so far
			var err error
			if s.client, err = s.Servers(); err != nil {
				return err
			}
		}
		return Logout(ctx, s.client, secret)
	})
}

// LogLogout logs the outcome of a logout and reports whether it worked. Fields of log
// may name the token by its accessor or file.
func LogLogout(log hclog.Logger, err error) bool {
	if err != nil {
		log.Warn("token was not logged out; the controller will remove it", logkey.Error, err)
		return false
	}
	log.Info("token logged out")
	return true
}

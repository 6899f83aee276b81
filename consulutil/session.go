package consulutil

import (
	"context"
	"errors"
	"fmt"
	"net/url"
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
	// Limit bounds a login with its retries and the wait for its token.
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
	ctx, cancel := context.WithTimeout(ctx, s.Limit)
	defer cancel()
	token := Token{Secret: p.Previous}
	serverFailed := false
	err := retry.Do(ctx, retry.Remote().Within(0), s.Log, "log in", Classify, func(ctx context.Context) error {
		got, err := s.login(ctx, &p, serverFailed)
		if err == nil {
			token = got
		}
		_, unsigned := errors.AsType[*SignError](err)
		serverFailed = !unsigned
		return err
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

// loginRemedy is what to check when a login was given up; the error of a refusal
// has its remedy already.
func loginRemedy(err error) string {
	_, unsigned := errors.AsType[*SignError](err)
	switch {
	case unsigned:
		return "check taskRoleArn in the task definition and that this task can reach its credentials and STS"
	case Status(err) != 0:
		return ""
	}
	return "check consulServers or consulHTTPAddr, for client-entrypoint -consul-http-addr, the CA certificate and that this task can reach the Consul servers"
}

// login is one attempt. After one that failed at the servers it asks for their leader
// first.
func (s *Session) login(ctx context.Context, p *LoginParams, serverFailed bool) (Token, error) {
	var err error
	if s.client == nil {
		if s.client, err = s.Servers(); err != nil {
			return Token{}, err
		}
	}
	if serverFailed {
		if err := leaderElected(ctx, s.client); err != nil {
			return Token{}, err
		}
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
	token, err := Login(ctx, s.client, *p)
	if isUnanswered(err) {
		s.Log.Warn("login was not answered; if it made a token, the controller will remove it", logkey.AuthMethod, p.Method)
	}
	return token, err
}

// leaderElected returns an error when the server does not answer or has no leader. A
// server without one holds a login for up to 7 s (rpc_hold_timeout), and answers seconds
// after the election; it answers this request at once.
func leaderElected(ctx context.Context, c *api.Client) error {
	leader, err := c.Status().LeaderWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
	_, unanswered := errors.AsType[*url.Error](err)
	switch {
	case unanswered:
		return fmt.Errorf("read the leader of the Consul servers: %w", err)
	case err == nil && leader == "":
		return &classed{errors.New("the Consul servers have no leader yet"), retry.NotYet}
	}
	return nil
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

package consulutil

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// LogoutLimit bounds a log-out with its retries when the caller says nothing: a
// container that starts has more important things to do, and the controller removes
// what stays.
const LogoutLimit = 10 * time.Second

// Session is the login of one container, with retries, and its log-out. Its
// methods are not safe for concurrent use.
type Session struct {
	// Servers returns a client for the address that logins go to. It is called
	// for every attempt: the CA file may have appeared since the last one.
	Servers func() (*api.Client, error)
	// Bearer signs a login for now; signatures expire.
	Bearer func(context.Context) (string, error)
	// Limit bounds the login's retries.
	Limit time.Duration
	Log   hclog.Logger

	client *api.Client // the login's
}

// SignRemedy is what to look at when a login was given up with a SignError.
const SignRemedy = "check taskRoleArn in the task definition and that this task can reach its credentials and STS"

// SignError is a login that did not get as far as Consul.
type SignError struct{ Err error }

func (e *SignError) Error() string { return "sign the login: " + e.Err.Error() }
func (e *SignError) Unwrap() error { return e.Err }

// Login logs in with retries; p.Bearer is made here. With a token there is no
// error, even when ctx has ended meanwhile: whoever gets it logs it out.
func (s *Session) Login(ctx context.Context, p LoginParams) (Token, error) {
	var token Token
	err := retry.Do(ctx, s.policy(s.Limit), s.Log, "log in", classifyLogin(), func(ctx context.Context) error {
		var err error
		token, err = s.login(ctx, p)
		return err
	})
	if err != nil {
		return Token{}, err
	}
	s.Log.Info("logged in", logkey.AuthMethod, p.Method, logkey.Accessor, token.Accessor)
	return token, nil
}

// startingLimit is how long a server is not believed that there is no such auth
// method: one that is starting does not know what is in its log yet, for some
// seconds.
const startingLimit = 3 * time.Second

// classifyLogin is Classify for the attempts of one login.
func classifyLogin() func(error) retry.Class {
	var first time.Time // that the method was not known
	return func(err error) retry.Class {
		if Status(err) != http.StatusForbidden || !strings.Contains(Reason(err), "ACL not found: auth method") {
			return Classify(err)
		}
		if first.IsZero() {
			first = time.Now()
		}
		if time.Since(first) < startingLimit {
			return retry.Retry
		}
		return Classify(err)
	}
}

func (s *Session) login(ctx context.Context, p LoginParams) (Token, error) {
	var err error
	if s.client, err = s.Servers(); err != nil {
		return Token{}, err
	}
	if p.Bearer, err = s.Bearer(ctx); err != nil {
		return Token{}, &SignError{err}
	}
	token, err := Login(ctx, s.client, p)
	if Unanswered(err) {
		s.Log.Warn("login was not answered; if it made a token, the controller will remove it", logkey.AuthMethod, p.Method)
	}
	return token, err
}

// WaitReplicated is the function of that name with the login's client.
func (s *Session) WaitReplicated(ctx context.Context, secret string) error {
	return WaitReplicated(ctx, s.client, secret)
}

// Logout logs a token out, with retries until the deadline of ctx; one without a
// deadline has LogoutLimit. At a task's end the servers may be back a second before
// KILL.
func (s *Session) Logout(ctx context.Context, secret string) error {
	policy := s.policy(LogoutLimit)
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

func (s *Session) policy(limit time.Duration) retry.Policy {
	p := retry.Remote()
	p.Limit = limit
	return p
}

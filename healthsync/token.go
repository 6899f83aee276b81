package healthsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// tokenLimit bounds the wait for the token file. mesh-init has written it
	// before this container starts, so it is there or it never comes.
	tokenLimit = 10 * time.Second
	// logOutTimeout bounds one attempt of a logout.
	logOutTimeout = 5 * time.Second
	// lastLoginLimit bounds the login of a task that ends and whose token has expired.
	lastLoginLimit = 5 * time.Second
)

// waitForToken reads the service token, if login is on. With a static token mesh-init
// does not log in, unless its container was given none.
func (s *syncer) waitForToken(ctx context.Context) error {
	switch _, err := s.readToken(workload.FileServiceToken); {
	case err == nil || !s.login:
	case s.StaticToken && errors.Is(err, errNoToken):
		s.Log.Info("using the token of the Consul environment in place of a login")
		s.login = false
	case s.mayLogIn() && errors.Is(err, errNoToken):
		return s.logInSeparately(ctx, retry.StartLimit, err)
	}
	classify := func(err error) retry.Class {
		if errors.Is(err, fs.ErrPermission) {
			return retry.Permanent // mode and group are set before the file has its name
		}
		return retry.NotYet
	}
	err := retry.Do(ctx, retry.LocalAgent().Within(tokenLimit), s.Log, "read service token", classify, func(context.Context) error {
		if s.reloadToken() {
			return nil
		}
		_, err := s.readToken(workload.FileServiceToken)
		return err
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNoToken):
		return exit.Usagef("login is enabled but there is no service token: has mesh-init run, with the same consulLogin.enabled and, in a task without an agent, without CONSUL_HTTP_TOKEN, and is its volume mounted at %s? %w", s.Config.BootstrapDir, err)
	default:
		return exit.Usagef("login is enabled but the service token cannot be read: %w (running as uid %d, gid %d): run this container as mesh-init's user or with the file's group, or see mesh-init's -file-group",
			err, os.Geteuid(), os.Getegid())
	}
}

// mayLogIn reports whether health-sync may use its own token. Without consul-dataplane
// it must be that of the file, which the proxy uses, too.
func (s *syncer) mayLogIn() bool { return s.login && !s.Config.Direct() }

// logInSeparately logs in for this container only, as each container of hashicorp/consul-ecs
// 0.10 does, whose definitions need not mount the volume here. limit bounds the read of the
// task's metadata.
func (s *syncer) logInSeparately(ctx context.Context, limit time.Duration, why error) error {
	s.Log.Warn("no service token, logging in separately: mount mesh-init's volume to share its token; without it the controller has to remove mesh-init's token",
		logkey.Reason, why)
	if !s.known {
		if err := s.learn(ctx, limit); err != nil {
			return err
		}
	}
	token, err := s.LogIn(ctx, s.w, s.first)
	s.token, s.separate = token.Secret, token.Secret != ""
	return err
}

// logInAtTheEnd logs in once for the last writes, when Consul does not know the service token
// any more, and reports whether there is another one.
func (s *syncer) logInAtTheEnd(ctx context.Context) bool {
	s.Log.Warn("consul does not know the service token, logging in to leave the traffic")
	ctx, cancel := context.WithTimeout(consulutil.WithLimit(ctx, lastLoginLimit), lastLoginLimit)
	defer cancel()
	token, err := s.LogIn(ctx, s.w, s.task)
	if token.Secret == "" {
		s.Log.Warn("no login at the end", logkey.Error, err)
		return false
	}
	s.token, s.separate = token.Secret, true
	return true
}

// errNoToken is the error of readToken when there is no token, rather than one that is out
// of reach.
var errNoToken = errors.New("does not exist or is empty")

// reloadToken takes the token from the renewal, or before there is one from its file, and
// reports whether there is one to use. Without login that is the Consul environment's, here
// the empty string. A token of a separate login stays in use, whatever appears in the file.
func (s *syncer) reloadToken() bool {
	if !s.login || s.separate {
		return true
	}
	if s.renewal != nil {
		s.token = s.renewal.Current()
		return true
	}
	if token, err := s.readToken(workload.FileServiceToken); err == nil {
		s.token = token
	}
	return s.token != ""
}

// readToken returns the token of a file, or an error.
func (s *syncer) readToken(name string) (string, error) {
	path := filepath.Join(s.Config.BootstrapDir, name)
	token, err := volume.ReadSecret(path)
	if err == nil && token == "" {
		err = fmt.Errorf("%s %w", path, errNoToken)
	}
	return token, err
}

// logOutAll destroys the tokens that end with the task, with client the client token,
// too. That comes last, because the agent may still be leaving with it. A logout that
// fails is logged and left to the controller. The tokens share the time until the
// deadline, which ctx must have.
func (s *syncer) logOutAll(ctx context.Context, client bool) {
	if !s.login {
		return
	}
	var secrets []string
	if s.separate {
		secrets = append(secrets, s.token)
	}
	if s.renewal != nil { // before the file is read, which it may replace until its end
		secrets = append(secrets, s.renewal.Stop(ctx)...)
	}
	tokens := s.fileTokens(workload.FileServiceToken)
	for _, secret := range secrets {
		if t := (fileToken{workload.FileServiceToken, secret}); !slices.Contains(tokens, t) {
			tokens = append(tokens, t)
		}
	}
	if client {
		tokens = append(tokens, s.fileTokens(workload.FileClientToken)...)
	}
	deadline, _ := ctx.Deadline()
	for i, token := range tokens {
		// An unreachable server must not use up the time of the tokens after.
		share, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(tokens)-i))
		defer cancel()
		path := filepath.Join(s.Config.BootstrapDir, token.name)
		consulutil.LogLogout(s.Log.With(logkey.Path, path), s.logOut(share, token))
	}
}

// logOutSeparate destroys the token of a separate login, when health-sync could not start.
func (s *syncer) logOutSeparate(ctx context.Context) {
	if !s.separate {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logOutTimeout)
	defer cancel()
	consulutil.LogLogout(s.Log, s.LogOut(ctx, s.token))
}

// fileToken is the token that a file of the bootstrap directory has or had.
type fileToken struct{ name, secret string }

// fileTokens returns the token in a file, if there is one.
func (s *syncer) fileTokens(name string) []fileToken {
	secret, err := s.readToken(name)
	if err != nil && name == workload.FileServiceToken {
		secret = s.token
	}
	path := filepath.Join(s.Config.BootstrapDir, name)
	switch {
	case secret != "":
		return []fileToken{{name, secret}}
	case errors.Is(err, errNoToken):
		s.Log.Debug("no token to log out", logkey.Path, path)
	default:
		consulutil.LogLogout(s.Log.With(logkey.Path, path), err)
	}
	return nil
}

func (s *syncer) logOut(ctx context.Context, token fileToken) error {
	attempt := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, logOutTimeout)
		defer cancel()
		return s.LogOut(ctx, token.secret)
	}
	return retry.Do(ctx, retry.Remote(), s.Log, "log out "+token.name, consulutil.Classify,
		sparing(time.Second, remaining(ctx)/2, attempt))
}

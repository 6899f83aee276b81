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
	"github.com/meshtask/consul-ecs/registrar"
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

// serviceToken is the token that the task presents.
type serviceToken struct {
	options Options
	deps    Deps
	task    *taskState
	// login reports that the task has logged in; it is settled by await.
	login  bool
	secret string
	// separate reports that the secret is of a login for this container only.
	separate bool
	renewal  *registrar.Renewal // nil without login, and before the loop
}

// await reads the service token, if login is on. With a static token mesh-init
// does not log in, unless its container was given none.
func (t *serviceToken) await(ctx context.Context) error {
	switch _, err := t.readFile(workload.FileServiceToken); {
	case err == nil || !t.login:
	case t.options.StaticToken && errors.Is(err, errNoToken):
		t.task.log.Info("using the token of the Consul environment in place of a login")
		t.login = false
	case t.mayLogIn() && errors.Is(err, errNoToken):
		return t.logInSeparately(ctx, retry.StartLimit, err)
	}
	classify := func(err error) retry.Class {
		if errors.Is(err, fs.ErrPermission) {
			return retry.Permanent // mode and group are set before the file has its name
		}
		return retry.NotYet
	}
	policy := retry.LocalAgent().Within(tokenLimit)
	err := retry.Do(ctx, policy, t.task.log, "read service token", classify, func(context.Context) error {
		if t.reload() {
			return nil
		}
		_, err := t.readFile(workload.FileServiceToken)
		return err
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNoToken):
		return exit.Usagef("login is enabled but there is no service token: has mesh-init run, with the same "+
			"consulLogin.enabled and, in a task without an agent, without CONSUL_HTTP_TOKEN, and is its volume "+
			"mounted at %s? %w", t.options.Config.BootstrapDir, err)
	default:
		return exit.Usagef("login is enabled but the service token cannot be read: %w (running as uid %d, gid %d): "+
			"run this container as mesh-init's user or with the file's group, or see mesh-init's -file-group",
			err, os.Geteuid(), os.Getegid())
	}
}

// mayLogIn reports whether health-sync may use its own token. Without consul-dataplane
// it must be that of the file, which the proxy uses, too.
func (t *serviceToken) mayLogIn() bool { return t.login && !t.options.Config.Direct() }

// logInSeparately logs in for this container only, as each container of hashicorp/consul-ecs
// 0.10 does, whose definitions need not mount the volume here. limit bounds the read of the
// task's metadata.
func (t *serviceToken) logInSeparately(ctx context.Context, limit time.Duration, why error) error {
	t.task.log.Warn("no service token, logging in separately: mount mesh-init's volume to share its token; without "+
		"it the controller has to remove mesh-init's token", logkey.Reason, why)
	if !t.task.known {
		if err := t.task.learn(ctx, limit); err != nil {
			return err
		}
	}
	token, err := t.deps.LogIn(ctx, t.task.workload, t.task.first)
	t.secret, t.separate = token.Secret, token.Secret != ""
	return err
}

// logInAtEnd logs in once for the last writes, when Consul does not know the service token
// any more, and reports whether there is another one.
func (t *serviceToken) logInAtEnd(ctx context.Context) bool {
	t.task.log.Warn("consul does not know the service token, logging in to leave the traffic")
	ctx, cancel := context.WithTimeout(consulutil.WithLimit(ctx, lastLoginLimit), lastLoginLimit)
	defer cancel()
	token, err := t.deps.LogIn(ctx, t.task.workload, t.task.first)
	if token.Secret == "" {
		t.task.log.Warn("no login at the end", logkey.Error, err)
		return false
	}
	t.secret, t.separate = token.Secret, true
	return true
}

// errNoToken is the error of readToken when there is no token, rather than one that is out
// of reach.
var errNoToken = errors.New("does not exist or is empty")

// reload takes the token from the renewal, or before there is one from its file, and
// reports whether there is one to use. Without login that is the Consul environment's, here
// the empty string. A token of a separate login stays in use, whatever appears in the file.
func (t *serviceToken) reload() bool {
	if !t.login || t.separate {
		return true
	}
	if t.renewal != nil {
		t.secret = t.renewal.Current()
		return true
	}
	if token, err := t.readFile(workload.FileServiceToken); err == nil {
		t.secret = token
	}
	return t.secret != ""
}

// readFile returns the token of a file, or an error.
func (t *serviceToken) readFile(name string) (string, error) {
	path := filepath.Join(t.options.Config.BootstrapDir, name)
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
func (t *serviceToken) logOutAll(ctx context.Context, client bool) {
	if !t.login {
		return
	}
	var secrets []string
	if t.separate {
		secrets = append(secrets, t.secret)
	}
	if t.renewal != nil { // before the file is read, which it may replace until its end
		secrets = append(secrets, t.renewal.Stop(ctx)...)
	}
	tokens := t.fileTokens(workload.FileServiceToken)
	for _, secret := range secrets {
		if t := (fileToken{workload.FileServiceToken, secret}); !slices.Contains(tokens, t) {
			tokens = append(tokens, t)
		}
	}
	if client {
		tokens = append(tokens, t.fileTokens(workload.FileClientToken)...)
	}
	deadline, _ := ctx.Deadline()
	for i, token := range tokens {
		// An unreachable server must not use up the time of the tokens after.
		share, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(tokens)-i))
		defer cancel()
		path := filepath.Join(t.options.Config.BootstrapDir, token.name)
		consulutil.LogLogout(t.task.log.With(logkey.Path, path), t.logOut(share, token))
	}
}

// logOutSeparate destroys the token of a separate login, when health-sync could not start.
func (t *serviceToken) logOutSeparate(ctx context.Context) {
	if !t.separate {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logOutTimeout)
	defer cancel()
	consulutil.LogLogout(t.task.log, t.deps.LogOut(ctx, t.secret))
}

// fileToken is the token that a file of the bootstrap directory has or had.
type fileToken struct{ name, secret string }

// fileTokens returns the token in a file, if there is one.
func (t *serviceToken) fileTokens(name string) []fileToken {
	secret, err := t.readFile(name)
	if err != nil && name == workload.FileServiceToken {
		secret = t.secret
	}
	path := filepath.Join(t.options.Config.BootstrapDir, name)
	switch {
	case secret != "":
		return []fileToken{{name, secret}}
	case errors.Is(err, errNoToken):
		t.task.log.Debug("no token to log out", logkey.Path, path)
	default:
		consulutil.LogLogout(t.task.log.With(logkey.Path, path), err)
	}
	return nil
}

func (t *serviceToken) logOut(ctx context.Context, token fileToken) error {
	attempt := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, logOutTimeout)
		defer cancel()
		return t.deps.LogOut(ctx, token.secret)
	}
	return retry.Do(ctx, retry.Remote(), t.task.log, "log out "+token.name, consulutil.Classify,
		sparing(time.Second, remaining(ctx)/2, attempt))
}

// agentOwned reports whether a client-entrypoint holds the agent for us. It takes its
// marker away when the agent is gone, at any time, so the answer is not kept. One that was
// killed leaves the marker, and its token to us.
func (t *serviceToken) agentOwned() bool {
	_, err := os.Stat(filepath.Join(t.options.Config.BootstrapDir, workload.FileClientTokenOwner))
	return !errors.Is(err, fs.ErrNotExist)
}

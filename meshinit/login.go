package meshinit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// logoutLimit bounds a log-out on the way out. With the two below it ends
	// well before ECS kills us, 30 s after TERM.
	logoutLimit = 10 * time.Second
	// deregisterLimit bounds the attempt to take a registration back.
	deregisterLimit = 3 * time.Second
	// copyLimit bounds the wait for a copy of this program whose result nobody
	// wants any more.
	copyLimit = 5 * time.Second
)

// signError is a login that did not get as far as Consul.
type signError struct{ err error }

func (e *signError) Error() string { return "sign the login: " + e.err.Error() }
func (e *signError) Unwrap() error { return e.err }

func (r *run) login(ctx context.Context) error {
	if !r.Config.ConsulLogin.Enabled {
		return nil
	}
	var err error
	if r.previous, err = readToken(r.tokenPath()); err != nil {
		r.Log.Warn("previous token could not be read and stays in Consul until the controller removes it", logkey.Error, err)
	}
	return retry.Do(ctx, r.remote(), r.Log, "log in", consulutil.Classify, r.loginOnce)
}

// loginOnce makes client and bearer anew: the CA file may have appeared since
// the last attempt, and signatures expire.
func (r *run) loginOnce(ctx context.Context) error {
	servers, err := r.Servers()
	if err != nil {
		return err
	}
	bearer, err := r.Bearer(ctx, r.task)
	if err != nil {
		return &signError{err}
	}
	token, err := consulutil.Login(ctx, servers, r.loginParams(bearer))
	if err != nil {
		if consulutil.Unanswered(err) {
			r.Log.Warn("login was not answered; if it made a token, the controller will remove it", logkey.AuthMethod, r.Config.ConsulLogin.Method)
		}
		return err
	}
	// From here on undo logs the token out.
	r.servers, r.token = servers, token
	r.Log.Info("logged in", logkey.AuthMethod, r.Config.ConsulLogin.Method, logkey.Accessor, token.Accessor)
	return ctx.Err()
}

func (r *run) loginParams(bearer string) consulutil.LoginParams {
	return consulutil.LoginParams{
		Method:    r.Config.ConsulLogin.Method,
		Bearer:    bearer,
		Partition: r.workload.Partition,
		Meta:      workload.LoginMeta(r.Config, r.task),
	}
}

func (r *run) waitReplicated(ctx context.Context) error {
	if r.token.Secret == "" {
		return nil
	}
	return consulutil.WaitReplicated(ctx, r.servers, r.token.Secret)
}

// logoutPrevious ends the token of an earlier run of the same task, now that
// the new one is in its place. It is a favour: a failure is for the controller.
func (r *run) logoutPrevious(ctx context.Context) error {
	if r.previous == "" || r.previous == r.token.Secret {
		return nil
	}
	if err := r.logout(ctx, r.servers, r.previous); err != nil {
		r.Log.Warn("previous token was not logged out; the controller will remove it", logkey.Error, err)
		return nil
	}
	r.Log.Info("logged out previous token")
	return nil
}

// undo takes back what a failed run has done that outlives it. It works after
// the end of ctx. The token comes before the files, since a volume that hangs
// must not keep it, and after the registration, which needs it.
func (r *run) undo(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	r.deregister(ctx)
	if r.token.Secret != "" {
		log := r.Log.With(logkey.Accessor, r.token.Accessor)
		if err := r.logout(ctx, r.servers, r.token.Secret); err != nil {
			log.Error("token was not logged out; the controller will remove it", logkey.Error, err)
		} else {
			log.Info("logged out")
		}
	}
	copied, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	// Its error is not news any more, its file would be.
	_ = r.finishCopy(copied)
	for _, path := range r.written {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.Log.Error("file of a failed start was not removed", logkey.Path, path, logkey.Error, err)
		}
	}
}

// deregister tries once: an agent that does not answer has either nothing of
// ours or will leave with it.
func (r *run) deregister(ctx context.Context) {
	if !r.registering {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, deregisterLimit)
	defer cancel()
	if err := r.agent.Registrar.Deregister(ctx, r.token.Secret, r.workload); err != nil {
		r.Log.Warn("registration was not taken back; it goes when the agent leaves", logkey.Error, err)
		return
	}
	r.Log.Info("deregistered", logkey.ServiceID, r.workload.ID, logkey.ProxyID, r.workload.Proxy.ID)
}

func (r *run) logout(ctx context.Context, servers *api.Client, secret string) error {
	policy := r.remote()
	policy.Limit = logoutLimit
	return retry.Do(ctx, policy, r.Log, "log out", consulutil.Classify, func(ctx context.Context) error {
		return consulutil.Logout(ctx, servers, secret)
	})
}

func (r *run) tokenPath() string {
	return filepath.Join(r.Config.BootstrapDir, workload.FileServiceToken)
}

// readToken returns the content of a token file, empty when there is none.
func readToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read previous token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

package meshinit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// deregisterLimit bounds the attempt to take a registration back. With
	// the one below and consulutil.LogoutLimit an undo ends well before ECS
	// kills the container, 30 s after TERM.
	deregisterLimit = 3 * time.Second
	// copyLimit bounds the wait for a copy of this program whose result is not
	// needed, so that the file can be removed.
	copyLimit = 5 * time.Second
)

// login leaves the token to undo, unless an earlier run obtained it: the proxy that it
// started presents it.
func (r *run) login(ctx context.Context) error {
	if !r.options.Config.ConsulLogin.Enabled {
		return nil
	}
	params := registrar.LoginParams(r.options.Config, r.workload.Partition, r.task)
	if r.options.Proxy.KeepsToken() {
		params.Meta[config.LoginMetaRenewed] = "false"
	}
	params.Previous = r.secrets().Previous(workload.FileServiceToken)
	r.session = r.deps.Session(r.task, r.deps.Log)
	var err error
	r.token, err = r.session.Login(ctx, params)
	r.resumed = r.token.Secret == params.Previous
	return err
}

// undo reverts what a failed run has done that outlives it. It works after
// the end of ctx. The token comes before the files, since a volume that hangs
// must not keep it, and after the registration, which needs it. Files and redirection of a
// task that was ready are in use, and so is a token that is in one of them.
func (r *run) undo(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	unused := r.redirected && !r.wasReady
	if unused { // the requests below would be led to the proxy, too
		r.restore(true)
	}
	r.deregister(ctx)
	inUse := r.wasReady && r.stored
	if r.token.Secret != "" && !r.resumed && !inUse {
		consulutil.LogLogout(r.deps.Log.With(logkey.Accessor, r.token.Accessor), r.session.Logout(ctx, r.token.Secret))
	}
	copied, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	// Its error does not matter, but the copy must not write after the removal.
	_ = r.finishCopy(copied)
	if !unused {
		r.restore(false)
	}
	if r.wasReady {
		return
	}
	for _, path := range r.written {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.deps.Log.Error("file of a failed start was not removed", logkey.Path, path, logkey.Error, err)
		}
	}
}

// restore ends the suspension of the redirection, or removes this run's.
func (r *run) restore(remove bool) {
	if !r.suspended {
		return
	}
	if err := r.deps.Redirect.Restore(remove); err != nil {
		r.deps.Log.Warn("redirection was not restored", logkey.Error, err)
	}
}

// deregister tries once: an agent that does not answer either does not have the
// registration or leaves with it.
func (r *run) deregister(ctx context.Context) {
	if !r.registering {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, deregisterLimit)
	defer cancel()
	if err := r.consul.Registrar.Deregister(ctx, r.token.Secret, r.workload); err != nil {
		r.deps.Log.Warn("registration was not rolled back", logkey.Error, err)
		return
	}
	r.deps.Log.Info("deregistered", logkey.ServiceID, r.workload.ID, logkey.ProxyID, r.workload.Proxy.ID)
}

// path returns the path of a file of the task.
func (r *run) path(name string) string { return filepath.Join(r.options.Config.BootstrapDir, name) }

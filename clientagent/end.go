package clientagent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
)

// end takes back what outlives this program, on every way out. The CA files
// stay: health-sync may still log out with them.
func (r *run) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.logOutTime())
	defer cancel()
	r.forget(ctx)
	out := r.logOutAll(ctx)
	if !r.writing {
		return
	}
	if out {
		// Otherwise it stays for the next run of this container, or for
		// health-sync, which takes over when the marker is gone.
		r.remove(os.Remove, r.path(workload.FileClientToken))
	}
	dir := r.path(workload.DirClient)
	if r.told.IsZero() { // another run may follow, with the agent's node and services
		r.remove(os.Remove, filepath.Join(dir, fileAgent), filepath.Join(dir, fileExtra), filepath.Join(dir, fileCA))
	} else { // the agent's data hold the gossip key and the tokens of services
		r.remove(os.RemoveAll, dir)
	}
	r.remove(os.Remove, r.path(workload.FileClientTokenOwner))
}

func (r *run) remove(with func(string) error, paths ...string) {
	for _, path := range paths {
		if err := with(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.Log.Error("file was not removed", logkey.Path, path, logkey.Error, err)
		}
	}
}

// logOutAll logs out this run's token and one of an earlier run, if that could
// not be done before. It says whether none is left that the file may hold.
func (r *run) logOutAll(ctx context.Context) bool {
	if r.session == nil {
		return false // a file that is there is not ours
	}
	out := true
	this := ctx
	if deadline, ok := ctx.Deadline(); ok && r.previous != "" {
		// Servers out of reach must not use up the time of the other token.
		var cancel context.CancelFunc
		this, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	if secret := r.token.Secret; secret != "" {
		log := r.Log.With(logkey.Accessor, r.token.Accessor)
		if err := r.session.Logout(this, secret); err != nil {
			log.Error("token was not logged out; the controller will remove it", logkey.Error, err)
			out = false
		} else {
			log.Info("logged out")
		}
	}
	if r.previous != "" {
		if err := r.session.Logout(ctx, r.previous); err != nil {
			r.Log.Error("previous token was not logged out; the controller will remove it", logkey.Error, err)
			out = false
		} else {
			r.Log.Info("logged out previous token")
		}
	}
	return out
}

// logOutTime bounds what end asks of the servers: by KILL, or by the time of one
// log-out when nobody has told us to end, since KILL may then come any time.
func (r *run) logOutTime() time.Duration {
	if r.told.IsZero() {
		return min(consulutil.LogoutLimit, r.schedule.done)
	}
	return r.schedule.done - time.Since(r.told)
}

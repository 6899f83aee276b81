package clientagent

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/workload"
)

// end logs out and removes what would outlive this program, on every path. The CA files
// stay: health-sync may still log out with them.
func (r *run) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.logOutTime())
	defer cancel()
	retired := r.endRenewal(ctx)
	r.forget(ctx)
	out := r.logout(ctx, append(retired, r.secret())...)
	r.logoutService(ctx)
	if !r.writing {
		return
	}
	if out {
		// Otherwise it stays for the next run of this container, or for
		// health-sync, which takes over when the marker is gone.
		r.files.remove(os.Remove, r.options.path(workload.FileClientToken))
	}
	dir := r.options.path(workload.DirClient)
	if r.stopRequested.IsZero() { // another run may follow, with the agent's node and services
		r.files.remove(os.Remove, filepath.Join(dir, fileAgent), filepath.Join(dir, fileExtra),
			filepath.Join(dir, fileCA))
	} else { // the agent's data hold the gossip key and the tokens of services
		r.files.remove(os.RemoveAll, dir)
	}
	r.files.remove(os.Remove, r.options.path(workload.FileClientTokenOwner))
}

// logout logs the tokens out, the current one last, and reports whether its file may be
// removed: a file without a login is not ours.
func (r *run) logout(ctx context.Context, secrets ...string) bool {
	if r.session == nil {
		return false
	}
	out := true
	for _, secret := range secrets {
		if secret != "" {
			out = consulutil.LogLogout(r.deps.Log.With(logkey.Path, r.options.path(workload.FileClientToken)),
				r.session.Logout(ctx, secret))
		}
	}
	return out
}

// logoutService logs out the token of service and proxy after an orderly leave.
// health-sync usually has, which is no error; but it may have given up at start, or
// have been killed, and no other container is left to do it. An agent that has not
// left gets no such end: Envoy or health-sync may still use the token.
func (r *run) logoutService(ctx context.Context) {
	if r.session == nil || !r.departed {
		return
	}
	path := r.options.path(workload.FileServiceToken)
	secret, err := volume.ReadSecret(path)
	if err == nil && secret == "" {
		return
	}
	if err == nil {
		err = r.session.Logout(ctx, secret)
	}
	consulutil.LogLogout(r.deps.Log.With(logkey.Path, path), err)
}

// logOutTime bounds what end asks of the servers: by KILL, or by the time of one
// logout when no signal has asked for the end, since KILL may then come any time.
func (r *run) logOutTime() time.Duration {
	if r.stopRequested.IsZero() {
		return min(consulutil.LogoutLimit, r.budget.ClientLogout)
	}
	return r.budget.ClientLogout - time.Since(r.stopRequested)
}

package clientagent

import (
	"context"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// keepToken starts the renewal of the client token. It ends when the agent leaves, or is gone.
func (r *run) keepToken(ctx context.Context) {
	if r.session == nil {
		return
	}
	params := registrar.LoginParams(r.options.Config, r.options.Agent.Partition, r.task)
	r.renewal = &registrar.Renewal{
		Path:      r.options.path(workload.FileClientToken),
		ReadToken: r.deps.ReadToken,
		LogIn: func(ctx context.Context) (consulutil.Token, error) {
			token, err := r.session.Login(ctx, params)
			if token.Secret != "" { // the servers that do not know it yet will
				err = nil
			}
			return token, err
		},
		LogOut: r.session.Logout,
		Use:    r.reload,
		Log:    r.deps.Log,
	}
	r.renewal.Start(ctx, r.token.Secret)
}

// reload gives a token to the agent. The agent reads its files again with SIGHUP, which
// waitForEnd sends: to one that leaves every signal is an order to end at once.
func (r *run) reload(ctx context.Context, secret string) error {
	if err := r.files.writeDocument(r.address, secret); err != nil {
		return err
	}
	select {
	case r.reloads <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reloadsIn returns the requests to reload that the phase permits.
func (r *run) reloadsIn(p phase) <-chan struct{} {
	if p == serving || p == waiting {
		return r.reloads
	}
	return nil
}

// endRenewal ends the renewal, and returns the secrets that it leaves to be logged out besides
// the current one.
func (r *run) endRenewal(ctx context.Context) []string {
	if r.renewal == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.logOutTime()/2)
	defer cancel()
	return r.renewal.Stop(ctx)
}

// secret returns the secret of the token to present; empty without ACLs.
func (r *run) secret() string {
	if r.renewal == nil {
		return r.token.Secret
	}
	return r.renewal.Current()
}

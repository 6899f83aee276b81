package healthsync

import (
	"context"
	"path/filepath"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// readOnce is why a token of consul-dataplane is not replaced.
const readOnce = "consul-dataplane keeps the token it started with: set proxy.mode to direct, or raise MaxTokenTTL " +
	"of the auth method"

// startRenewal starts the renewal of the service token. logOutAll ends it: the token is needed for
// the last writes. ended is the end of synchronizing, and use gives a token to the agent.
func (t *serviceToken) startRenewal(ended context.Context, use func(context.Context, string) error) {
	if !t.login {
		return
	}
	task := t.task.first
	task.Containers = nil
	w := t.task.workload
	t.renewal = &registrar.Renewal{
		Path:      filepath.Join(t.options.Config.BootstrapDir, workload.FileServiceToken),
		Separate:  t.separate,
		ReadToken: t.deps.ReadToken,
		LogIn: func(ctx context.Context) (consulutil.Token, error) {
			return t.deps.LogIn(ctx, w, task)
		},
		LogOut: t.deps.LogOut,
		Log:    t.task.log,
	}
	switch {
	case !t.options.Config.Direct():
		t.renewal.ReadOnce = readOnce
	case !t.options.Config.Agentless():
		t.renewal.Use = use
	}
	t.separate = false // from now on its token is the renewal's
	t.renewal.Start(context.WithoutCancel(ended), t.secret)
}

// registerAgain returns what gives a token to the agent, which watches and synchronizes each
// service, proxy and check with the token of its registration. What is registered keeps its
// status. It does nothing after the end of synchronizing, which awaitRegistration waits for.
func (s *syncer) registerAgain(ended context.Context) func(context.Context, string) error {
	return func(_ context.Context, secret string) error {
		s.registering.Lock()
		defer s.registering.Unlock()
		if ended.Err() != nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ended, writeTimeout)
		defer cancel()
		err := s.deps.Registrar.Register(ctx, secret, s.task.workload)
		s.cutOff = err != nil && ended.Err() != nil
		return err
	}
}

// awaitRegistration waits for a registration that the end of synchronizing has cut off: it may
// yet be applied, after the last write.
func (s *syncer) awaitRegistration() {
	s.registering.Lock()
	defer s.registering.Unlock()
	s.checks.readBacks.unanswered = s.checks.readBacks.unanswered || s.cutOff
}

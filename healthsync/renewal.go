package healthsync

import (
	"context"
	"path/filepath"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// readOnce is why a token of consul-dataplane is not replaced.
const readOnce = "consul-dataplane keeps the token it started with: set proxy.mode to direct, or raise MaxTokenTTL of the auth method"

// keepToken starts the renewal of the service token. logOutAll ends it: the token is needed for
// the last writes. ended is the end of synchronizing.
func (s *syncer) keepToken(ended context.Context) {
	if !s.login {
		return
	}
	task := s.first
	task.Containers = nil
	w := s.w
	s.renewal = &registrar.Renewal{
		Path:      filepath.Join(s.Config.BootstrapDir, workload.FileServiceToken),
		Separate:  s.separate,
		ReadToken: s.ReadToken,
		LogIn: func(ctx context.Context) (consulutil.Token, error) {
			return s.LogIn(ctx, w, task)
		},
		LogOut: s.LogOut,
		Log:    s.Log,
	}
	switch {
	case !s.Config.Direct():
		s.renewal.ReadOnce = readOnce
	case !s.Config.Agentless():
		s.renewal.Use = s.registerAgain(ended)
	}
	s.task, s.separate = task, false // from now on its token is the renewal's
	s.renewal.Start(context.WithoutCancel(ended), s.token)
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
		err := s.Registrar.Register(ctx, secret, s.w)
		s.cutOff = err != nil && ended.Err() != nil
		return err
	}
}

// awaitRegistration waits for a registration that the end of synchronizing has cut off: it may
// yet be applied, after the last write.
func (s *syncer) awaitRegistration() {
	s.registering.Lock()
	defer s.registering.Unlock()
	s.readBacks.doubt = s.readBacks.doubt || s.cutOff
}

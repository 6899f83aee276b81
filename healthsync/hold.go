package healthsync

import (
	"context"

	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// holdSession keeps the session that the checks depend on in a goroutine that ends with ctx:
// its renewals wait neither for the reads of checks nor for the writes.
func (s *syncer) holdSession(ctx context.Context) {
	holder, ok := s.Registrar.(registrar.SessionHolder)
	if !ok || !s.checked() {
		return
	}
	token, renewed := s.token, s.login && !s.separate
	credentials := func() (string, bool) {
		if renewed {
			if found, err := s.readToken(workload.FileServiceToken); err == nil {
				token = found
			}
		}
		return token, s.vouched.Load()
	}
	s.holding = holder.Hold(ctx, s.Log, credentials, s.w)
}

package healthsync

import (
	"context"

	"github.com/meshtask/consul-ecs/registrar"
)

// holdSession keeps the session that the checks depend on in a goroutine that ends with ctx:
// its renewals wait neither for the reads of checks nor for the writes.
func (s *syncer) holdSession(ctx context.Context) {
	holder, ok := s.Registrar.(registrar.SessionHolder)
	if !ok || !s.checked() {
		return
	}
	token, renewal := s.token, s.renewal
	credentials := func() (string, bool) {
		if renewal != nil {
			token = renewal.Current()
		}
		return token, s.vouched.Load()
	}
	s.holding = holder.Hold(ctx, s.Log, credentials, s.w)
}

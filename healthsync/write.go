package healthsync

import (
	"context"

	"github.com/meshtask/consul-ecs/registrar"
)

// write makes the changes, and has a result for each.
func (s *syncer) write(ctx context.Context, changes ...change) []registrar.Result {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	updates := make([]registrar.Update, len(changes))
	for i, c := range changes {
		updates[i] = c.update()
	}
	return s.Registrar.Set(ctx, s.token, s.w, updates)
}

package scenario

import (
	"context"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// cleared waits until nothing of a stopped task is left in Consul but what its
// step says, unless an observer judges that.
func (r *runner) cleared(ctx context.Context, name string, leaves file.Leaves) error {
	r.tasks.Change(name, func(t *Task) { t.Judged = true })
	if r.observer != nil {
		return nil
	}
	return r.leaving.Cleared(ctx, name, leaves)
}

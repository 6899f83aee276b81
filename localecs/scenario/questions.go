package scenario

import (
	"context"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// question carries out a step that asks a task something.
func (r *runner) question(ctx context.Context, s file.Step) (err error) {
	var e Event
	switch {
	case s.MTLS != nil:
		e.Kind, e.Task = KindMTLS, s.MTLS.Task
		e.Text, err = MTLS(ctx, r.cluster.Dial, r.task(e.Task).IP(), *s.MTLS)
	case s.Get != nil:
		e.Kind, e.Task = KindGet, s.Get.Task
		e.Text, err = Get(ctx, r.task(e.Task).Dial, *s.Get)
	default:
		e.Kind, e.Task = KindPost, s.Post.Task
		e.Text, err = Post(ctx, r.task(e.Task).Dial, *s.Post)
	}
	if err == nil {
		r.tell(e)
	}
	return err
}

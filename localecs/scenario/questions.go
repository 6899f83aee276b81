package scenario

import (
	"context"

	"github.com/meshtask/consul-ecs/localecs/scenario/ask"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
)

// question carries out a step that asks a task something.
func (r *runner) question(ctx context.Context, s file.Step) (err error) {
	var e progress.Event
	switch {
	case s.MTLS != nil:
		e.Kind, e.Task = progress.MTLS, s.MTLS.Task
		e.Text, err = ask.MTLS(ctx, r.cluster.Dial, r.task(e.Task).IP(), *s.MTLS)
	case s.Get != nil:
		e.Kind, e.Task = progress.Get, s.Get.Task
		e.Text, err = ask.Get(ctx, r.task(e.Task).Dial, *s.Get)
	default:
		e.Kind, e.Task = progress.Post, s.Post.Task
		e.Text, err = ask.Post(ctx, r.task(e.Task).Dial, *s.Post)
	}
	if err == nil {
		r.tell(e)
	}
	return err
}

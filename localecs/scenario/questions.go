package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/scenario/ask"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
)

// mtls looks at the listener from outside the mesh: who does it say it is, and
// does it serve somebody without a certificate?
func (r *runner) mtls(ctx context.Context, m file.MTLS) error {
	address := net.JoinHostPort(r.task(m.Task).IP(), fmt.Sprint(m.Port))
	identity, err := ask.Identity(ctx, r.cluster.Dial, address)
	if err != nil && !errors.Is(err, ask.ErrServed) {
		return fmt.Errorf("mtls of %s: %w", m.Task, err)
	}
	if !strings.HasSuffix(identity, "/svc/"+m.Service) {
		return fmt.Errorf("mtls: %s presents %q, not service %s", m.Task, identity, m.Service)
	}
	if err != nil {
		return fmt.Errorf("mtls of %s: %w", m.Task, err)
	}
	r.tell(progress.Event{Kind: progress.MTLS, Task: m.Task, Text: "presents " + identity + "; refuses a caller without a certificate"})
	return nil
}

// get asks from inside the task and looks at the answer.
func (r *runner) get(ctx context.Context, g file.Get) error {
	answer, err := ask.Send(ctx, r.task(g.Task).Dial, http.MethodGet, g.URL)
	if err == nil {
		err = ask.Look(answer, g.Has, g.Lacks)
	}
	if err != nil {
		return fmt.Errorf("get %s in %s: %w", g.URL, g.Task, err)
	}
	text := "GET " + g.URL
	if len(g.Has) > 0 {
		text += ", has " + strings.Join(g.Has, ", ")
	}
	if len(g.Lacks) > 0 {
		text += ", lacks " + strings.Join(g.Lacks, ", ")
	}
	r.tell(progress.Event{Kind: progress.Get, Task: g.Task, Text: text})
	return nil
}

func (r *runner) post(ctx context.Context, p file.Post) error {
	if _, err := ask.Send(ctx, r.task(p.Task).Dial, http.MethodPost, p.URL); err != nil {
		return fmt.Errorf("post %s in %s: %w", p.URL, p.Task, err)
	}
	r.tell(progress.Event{Kind: progress.Post, Task: p.Task, Text: "POST " + p.URL})
	return nil
}

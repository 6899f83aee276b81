package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// MTLS carries out a step: it looks at the listener of the task at ip from outside
// the mesh. Who does it say it is, and does it serve somebody without a
// certificate? It returns what it has found, for people.
func MTLS(ctx context.Context, dial DialFunc, ip string, m file.MTLS) (string, error) {
	identity, err := Identity(ctx, dial, net.JoinHostPort(ip, fmt.Sprint(m.Port)))
	if err != nil && !errors.Is(err, ErrServed) {
		return "", fmt.Errorf("mtls of %s: %w", m.Task, err)
	}
	if !strings.HasSuffix(identity, "/svc/"+m.Service) {
		return "", fmt.Errorf("mtls: %s presents %q, not service %s", m.Task, identity, m.Service)
	}
	if err != nil {
		return "", fmt.Errorf("mtls of %s: %w", m.Task, err)
	}
	return "presents " + identity + "; refuses a caller without a certificate", nil
}

// Get carries out a step: it asks from inside the task that dial is of, looks at
// the answer, and returns what it has found, for people.
func Get(ctx context.Context, dial DialFunc, g file.Get) (string, error) {
	answer, err := Send(ctx, dial, http.MethodGet, g.URL)
	if err == nil {
		err = CheckAnswer(answer, g.Has, g.Lacks)
	}
	if err != nil {
		return "", fmt.Errorf("get %s in %s: %w", g.URL, g.Task, err)
	}
	text := "GET " + g.URL
	if len(g.Has) > 0 {
		text += ", has " + strings.Join(g.Has, ", ")
	}
	if len(g.Lacks) > 0 {
		text += ", lacks " + strings.Join(g.Lacks, ", ")
	}
	return text, nil
}

// Post is Get without a look at the answer.
func Post(ctx context.Context, dial DialFunc, p file.Post) (string, error) {
	if _, err := Send(ctx, dial, http.MethodPost, p.URL); err != nil {
		return "", fmt.Errorf("post %s in %s: %w", p.URL, p.Task, err)
	}
	return "POST " + p.URL, nil
}

package scenario

import (
	"context"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/retry"
)

// tokensEvery is how often the server is asked for tokens, which have no blocking
// query. The pause is at least tokensShare times the last answer's time, so that the
// queries are a small part of the server's load. tokensLimit bounds an answer: the
// server may be frozen.
const (
	tokensEvery = 200 * time.Millisecond
	tokensShare = 20
	tokensLimit = 3 * time.Second
)

// loginToken is a login token.
type loginToken struct {
	Accessor, Method string
	// CreatedAt is the server's time.
	CreatedAt time.Time
	// description has the ID of the task that has logged in.
	description string
}

// Of reports whether the task has logged in for it.
func (t loginToken) Of(taskID string) bool { return hasTask(t.description, taskID) }

// followTokens reports each new login token and, about tokensEvery late, its end,
// until ctx ends. A failed query is repeated the next time.
func followTokens(ctx context.Context, client *api.Client, changed func(at time.Time, t loginToken, gone bool)) {
	known := map[string]loginToken{}
	for pause := tokensEvery; retry.Sleep(ctx, pause) == nil; {
		asked := time.Now()
		now, err := tokens(ctx, client)
		at := time.Now()
		pause = min(max(tokensEvery, tokensShare*at.Sub(asked)), tokensLimit)
		if err == nil {
			tokensBetween(known, now, func(t loginToken, gone bool) {
				if gone {
					changed(at, t, true)
				} else {
					changed(t.CreatedAt, t, false)
				}
			})
			known = now
		}
	}
}

// tokensBetween reports the differences.
func tokensBetween(old, now map[string]loginToken, changed func(t loginToken, gone bool)) {
	for id, t := range now {
		if _, known := old[id]; !known {
			changed(t, false)
		}
	}
	for id, t := range old {
		if _, still := now[id]; !still {
			changed(t, true)
		}
	}
}

// tokens returns the login tokens by accessor.
func tokens(ctx context.Context, client *api.Client) (map[string]loginToken, error) {
	ctx, cancel := context.WithTimeout(ctx, tokensLimit)
	defer cancel()
	list, _, err := client.ACL().TokenList(consistent().WithContext(ctx))
	if err != nil {
		return nil, err
	}
	all := map[string]loginToken{}
	for _, t := range list {
		if t.AuthMethod != "" {
			all[t.AccessorID] = loginToken{
				Accessor: t.AccessorID, Method: t.AuthMethod, CreatedAt: t.CreateTime, description: t.Description,
			}
		}
	}
	return all, nil
}

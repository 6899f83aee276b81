package scenario

import (
	"context"
	"time"

	"github.com/hashicorp/consul/api"
)

// tokensEvery is how often the server is asked for tokens, which it does not tell of
// by itself. An answer takes it a millisecond; when it takes longer, it is asked less
// often, so that looking on is a small part of its work. tokensLimit bounds an answer: it
// may be frozen.
const (
	tokensEvery = 200 * time.Millisecond
	tokensShare = 20
	tokensLimit = 3 * time.Second
)

// Token is a login token.
type Token struct {
	Accessor, Method string
	// CreatedAt is the server's time.
	CreatedAt time.Time
	// description has the ID of the task that has logged in.
	description string
}

// Of reports whether it is that task's.
func (t Token) Of(taskID string) bool { return HasTask(t.description, taskID) }

// FollowTokens tells of each new login token and, about tokensEvery late, of its end,
// until ctx ends. What cannot be found out is asked next time.
func FollowTokens(ctx context.Context, client *api.Client, changed func(at time.Time, t Token, gone bool)) {
	known, pause := map[string]Token{}, tokensEvery
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		asked := time.Now()
		now, err := tokens(ctx, client)
		at := time.Now()
		pause = min(max(tokensEvery, tokensShare*at.Sub(asked)), tokensLimit)
		if err == nil {
			tokensBetween(known, now, func(t Token, gone bool) {
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

// tokensBetween tells what differs.
func tokensBetween(old, now map[string]Token, changed func(t Token, gone bool)) {
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

// tokens are the login tokens that there are, by accessor.
func tokens(ctx context.Context, client *api.Client) (map[string]Token, error) {
	ctx, cancel := context.WithTimeout(ctx, tokensLimit)
	defer cancel()
	list, _, err := client.ACL().TokenList(consistent().WithContext(ctx))
	if err != nil {
		return nil, err
	}
	all := map[string]Token{}
	for _, t := range list {
		if t.AuthMethod != "" {
			all[t.AccessorID] = Token{Accessor: t.AccessorID, Method: t.AuthMethod, CreatedAt: t.CreateTime, description: t.Description}
		}
	}
	return all, nil
}

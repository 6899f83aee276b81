package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/exit"
)

// MinTokenTTL and MaxTokenTTL bound the MaxTokenTTL of an auth method. Consul refuses less than a
// minute unless its servers are configured otherwise; the upper limit is ours.
const MinTokenTTL, MaxTokenTTL = time.Minute, 24 * time.Hour

// CheckTokenTTL returns an error unless Consul takes the duration for MaxTokenTTL; 0 means none.
func CheckTokenTTL(ttl time.Duration) error {
	if ttl != 0 && (ttl < MinTokenTTL || ttl > MaxTokenTTL) {
		return exit.Usagef("token TTL %s: want %s to %s, or 0s for tokens that do not expire",
			ttl, MinTokenTTL, MaxTokenTTL)
	}
	return nil
}

// tokenTTL decides the MaxTokenTTL of a found method, and what the controller's record has of it
// afterwards. The shortest of what controllers ask for counts. A value that no controller
// recorded is an operator's, and so is a method without the controllers' description.
func (c claims) tokenTTL(
	want AuthMethod, found *api.ACLAuthMethod, unrenewed []string, t *trust,
) (ttl, recorded time.Duration) {
	have := found.MaxTokenTTL
	if want.TokenTTL == 0 && c.own.TokenTTL.Duration == 0 {
		return have, 0
	}
	shortest, known := want.TokenTTL, have == 0 || have == c.own.TokenTTL.Duration
	for _, r := range c.others {
		theirs := r.TokenTTL.Duration
		known = known || have == theirs
		if theirs != 0 && (shortest == 0 || theirs < shortest) {
			shortest = theirs
		}
	}
	why := notice{Method: c.method}
	switch {
	case have == shortest:
		return shortest, want.TokenTTL
	case found.Description != want.Description:
		why.Text = noticeTheirMethod
	case !known:
		why.Text, why.Other = noticeTheirTTL, have.String()
	case have == 0 && len(unrenewed) > 0 && !want.ForceTTL:
		why.Text, why.Other = noticeUnrenewed, shown(unrenewed)
	default:
		return shortest, want.TokenTTL
	}
	t.notices = append(t.notices, why)
	return have, 0
}

// shownTasks is how many tasks a notice names.
const shownTasks = 10

// shown returns the first of the tasks, and how many there are.
func shown(tasks []string) string {
	return fmt.Sprintf("%d: %s", len(tasks), strings.Join(tasks[:min(len(tasks), shownTasks)], ", "))
}

// readUnrenewed returns whose tokens of an auth method are not replaced before they expire, as far
// as their logins declared it: the tasks' IDs, and the accessors of tokens that name no task.
func (s *Setup) readUnrenewed(ctx context.Context, m AuthMethod) (names []string, err error) {
	places, err := s.tokenScopes(ctx, m.Scope)
	if err != nil {
		return nil, err
	}
	type entry struct{ AccessorID, AuthMethod, Description string }
	var list consulutil.ListMeta
	stream := consulutil.Stream(ctx, &list, func(e entry) error {
		meta := consulutil.LoginMeta(e.Description)
		if !aclrules.SameName(e.AuthMethod, m.Name) || meta[config.LoginMetaRenewed] == "true" {
			return nil
		}
		name := e.AccessorID
		if task := meta[config.LoginMetaTaskID]; config.IsDNSLabel(task) { // any text is possible
			name = task
		}
		names = append(names, name)
		return nil
	})
	for _, place := range places {
		var filter api.ACLTokenFilterOptions
		if place.Namespace == "" { // the API client cannot name a method of another namespace
			filter.AuthMethod = m.Name
		}
		if _, _, err := s.Client.ACL().TokenListFiltered(filter, s.queryOptions(stream, place)); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// tokenScopes returns where an auth method makes tokens: with partitions, its logins name any
// namespace of theirs.
func (s *Setup) tokenScopes(ctx context.Context, method Scope) (scopes []Scope, err error) {
	if method.Partition == "" {
		return []Scope{method}, nil
	}
	namespaces, _, err := s.Client.Namespaces().List(s.queryOptions(ctx, Scope{Partition: method.Partition}))
	for _, n := range namespaces {
		scopes = append(scopes, Scope{Partition: method.Partition, Namespace: n.Name})
	}
	return scopes, err
}

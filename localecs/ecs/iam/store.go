package iam

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

var (
	// ErrUnknownID is about a credentials ID that was never issued, or removed.
	ErrUnknownID = errors.New("credentials not found")
	// ErrNoRole is about a role that the store does not have.
	ErrNoRole = errors.New("no such role; put it into the store first")
)

// keepExpired is how long an expired key is remembered, so that its use is
// answered ExpiredToken and not InvalidClientTokenId.
const keepExpired = 24 * time.Hour

// Store holds roles, users and keys of a whole simulated account or several.
// It is safe for concurrent use. Methods that depend on time take now.
type Store struct {
	mu    sync.RWMutex
	roles map[string]Role // by ARN
	users map[string]User // by ARN
	open  map[string]grant
	keys  map[string]Key // by access key ID
}

type grant struct {
	roleARN, session string
	key              Key // the current one
}

// NewStore returns an empty Store.
func NewStore() *Store {
	return &Store{
		roles: map[string]Role{},
		users: map[string]User{},
		open:  map[string]grant{},
		keys:  map[string]Key{},
	}
}

// PutRole makes a role known, or replaces the one with the same ARN.
func (s *Store) PutRole(r Role) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roles[r.ARN()] = r
}

// Role returns the role of that ARN.
func (s *Store) Role(arn string) (Role, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.roles[arn]
	return r, ok
}

// PutUser makes a user known and returns a long-term key for it.
func (s *Store) PutUser(u User) Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := userKey(u)
	s.users[u.ARN()] = u
	s.keys[k.AccessKeyID] = k
	return k
}

func (s *Store) userNamed(account, name string) (User, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, u := range s.users {
		if u.Account == account && u.Name == name {
			return u, true
		}
	}
	return User{}, false
}

// Issue opens a credentials ID for a session of a known role, with its first key. The
// result goes into AWS_CONTAINER_CREDENTIALS_RELATIVE_URI through RelativeURI.
func (s *Store) Issue(roleARN, session string, now time.Time) (string, error) {
	if _, ok := s.Role(roleARN); !ok {
		return "", fmt.Errorf("assume role %q: %w", roleARN, ErrNoRole)
	}
	id := uuid.New().String()
	s.mu.Lock()
	s.open[id] = grant{roleARN: roleARN, session: session}
	s.mu.Unlock()
	return id, s.Rotate(id, now)
}

// Rotate gives the ID a new key that lives Lifetime from now. Older keys stay
// valid until they expire.
func (s *Store) Rotate(id string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.open[id]
	if !ok {
		return fmt.Errorf("rotate credentials %q: %w", id, ErrUnknownID)
	}
	for keyID, k := range s.keys {
		if k.Expired(now.Add(-keepExpired)) {
			delete(s.keys, keyID)
		}
	}
	g.key = sessionKey(s.roles[g.roleARN], g.session, now)
	s.open[id], s.keys[g.key.AccessKeyID] = g, g.key
	return nil
}

// Remove closes the ID, for a task that is STOPPED. Its keys stay valid until
// they expire: AWS does not revoke them either. An unknown ID is ignored.
func (s *Store) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

// Current returns the newest key of an ID, or ErrUnknownID.
func (s *Store) Current(id string) (Key, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if g, ok := s.open[id]; ok {
		return g.key, nil
	}
	return Key{}, ErrUnknownID
}

// Key finds a key by its access key ID, also when it expired a short while
// ago or is not the newest of its ID.
func (s *Store) Key(accessKeyID string) (Key, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k, ok := s.keys[accessKeyID]
	return k, ok
}

// Allows reports whether the policy of a key's owner allows an action, such as
// "ecs:RunTask".
func (s *Store) Allows(k Key, action string) bool {
	var actions []string
	if k.RoleARN != "" {
		role, _ := s.Role(k.RoleARN)
		actions = role.Actions
	} else {
		user, _ := s.userNamed(k.Principal.Account, k.UserName)
		actions = user.Actions
	}
	return slices.ContainsFunc(actions, func(pattern string) bool { return matches(pattern, action) })
}

// matches compares as IAM does: in any case, * for any text, ? for a character.
func matches(pattern, action string) bool {
	text := regexp.QuoteMeta(pattern)
	text = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(text)
	return regexp.MustCompile("(?i)^" + text + "$").MatchString(action)
}

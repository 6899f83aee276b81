package iam

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Errors of Store.Current.
var (
	// ErrUnknownID is about a credentials ID that was never opened, or removed.
	ErrUnknownID = errors.New("credentials not found")
	// ErrUninitialized is about an ID that has no key yet.
	ErrUninitialized = errors.New("credentials uninitialized")
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

// grant is one credentials ID.
type grant struct {
	roleARN, session string
	keyID            string // of the current key, empty before the first
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

// DeleteRole forgets a role; keys issued for it stay valid, as in AWS for the
// minutes until its deletion has spread.
func (s *Store) DeleteRole(arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.roles, arn)
}

// Role returns the role of that ARN.
func (s *Store) Role(arn string) (Role, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.roles[arn]
	return r, ok
}

// RoleNamed returns an account's role by name; names are unique in an
// account whatever their paths.
func (s *Store) RoleNamed(account, name string) (Role, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range s.roles {
		if r.Account == account && r.Name == name {
			return r, true
		}
	}
	return Role{}, false
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

// UserNamed returns an account's user by name.
func (s *Store) UserNamed(account, name string) (User, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, u := range s.users {
		if u.Account == account && u.Name == name {
			return u, true
		}
	}
	return User{}, false
}

// Open reserves a credentials ID for a session of a known role, without a key:
// the endpoint answers 503 until Rotate.
func (s *Store) Open(roleARN, session string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.roles[roleARN]; !ok {
		return "", fmt.Errorf("assume role %q: no such role; put it into the store first", roleARN)
	}
	id := uuid.New().String()
	s.open[id] = grant{roleARN: roleARN, session: session}
	return id, nil
}

// Issue is Open and the first Rotate. The result goes into
// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI through RelativeURI.
func (s *Store) Issue(roleARN, session string, now time.Time) (string, error) {
	id, err := s.Open(roleARN, session)
	if err != nil {
		return "", err
	}
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
	role, ok := s.roles[g.roleARN]
	if !ok {
		return fmt.Errorf("rotate credentials %q: role %q is gone", id, g.roleARN)
	}
	for keyID, k := range s.keys {
		if k.Expired(now.Add(-keepExpired)) {
			delete(s.keys, keyID)
		}
	}
	k := sessionKey(role, g.session, now)
	g.keyID = k.AccessKeyID
	s.open[id], s.keys[k.AccessKeyID] = g, k
	return nil
}

// Remove closes the ID, for a task that is STOPPED. Its keys stay valid until
// they expire: AWS does not revoke them either. An unknown ID is ignored.
func (s *Store) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

// Current returns the newest key of an ID, or ErrUnknownID, ErrUninitialized.
func (s *Store) Current(id string) (Key, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	g, ok := s.open[id]
	if !ok {
		return Key{}, ErrUnknownID
	}
	k, ok := s.keys[g.keyID]
	if !ok {
		return Key{}, ErrUninitialized
	}
	return k, nil
}

// Key finds a key by its access key ID, also when it expired a short while
// ago or is not the newest of its ID.
func (s *Store) Key(accessKeyID string) (Key, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k, ok := s.keys[accessKeyID]
	return k, ok
}

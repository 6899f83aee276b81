package broker

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/internal/secret"
)

// Record is what the broker remembers of a task's tokens. It has no secret.
type Record struct {
	TaskARN string        `json:"task_arn"`
	Cluster string        `json:"cluster"`
	Tokens  []IssuedToken `json:"tokens"`
	// Writer identifies the leadership in which a broker wrote the record.
	Writer string `json:"writer,omitempty"`
	// Version is the store's, for its next Save.
	Version uint64 `json:"-"`
}

// Clone returns a copy that shares nothing.
func (r *Record) Clone() Record {
	c := *r
	c.Tokens = slices.Clone(r.Tokens)
	return c
}

// IssuedToken is a token of a task, the earliest first.
type IssuedToken struct {
	RequestID string      `json:"request_id"`
	Accessor  string      `json:"accessor"`
	Status    TokenStatus `json:"status"`
	// SecretHash is the SHA-256 of the secret, in hex: a rotation proves it.
	SecretHash string `json:"secret_hash,omitempty"`
	Address    string `json:"address"`
	Port       int    `json:"port"`
	// Expires is zero for a token that ends with its task.
	Expires time.Time `json:"expires,omitzero"`
	// Renewable means that its holder moves Expires.
	Renewable bool `json:"renewable,omitempty"`
}

// TokenStatus is how far a token is.
type TokenStatus string

// The statuses of a token. After a restart a broker revokes what is not Live.
const (
	TokenPending TokenStatus = "pending"
	// TokenLive is a token that the task has. Of several, the task may have any: which one
	// becomes known with its next request.
	TokenLive TokenStatus = "live"
	// TokenReplaced is one in place of which the task has confirmed another; it is revoked
	// after the overlap.
	TokenReplaced TokenStatus = "replaced"
	TokenRevoking TokenStatus = "revoking"
)

// hashOf returns the hash of a secret in a record.
func hashOf(v secret.Value) string {
	hash := sha256.Sum256([]byte(v.Reveal()))
	return hex.EncodeToString(hash[:])
}

// Due reports whether the end of a token's life has passed, unless it was renewed.
func (k IssuedToken) Due(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// End returns what an error states about when the token ends.
func (k IssuedToken) End() string {
	if k.Expires.IsZero() {
		return "does not expire"
	}
	return "ends at " + k.Expires.UTC().Format(time.RFC3339)
}

// Ended reports whether a token's life is over by the clock of this host.
func (k IssuedToken) Ended(now time.Time) bool { return !k.Renewable && k.Due(now) }

// Live returns the task's last live token.
func (r *Record) Live(now time.Time) (IssuedToken, bool) {
	for _, t := range slices.Backward(r.Tokens) {
		if t.Status == TokenLive && !t.Ended(now) {
			return t, true
		}
	}
	return IssuedToken{}, false
}

// Proven returns the live token whose secret has the hash of the bearer, which is empty
// without one.
func (r *Record) Proven(hash string) (IssuedToken, bool) {
	i := slices.IndexFunc(r.Tokens, func(t IssuedToken) bool { return t.Status == TokenLive && t.SecretHash == hash })
	if i < 0 || hash == "" {
		return IssuedToken{}, false
	}
	return r.Tokens[i], true
}

// Find returns a request's token for a change.
func (r *Record) Find(requestID string) *IssuedToken {
	i := slices.IndexFunc(r.Tokens, func(t IssuedToken) bool { return t.RequestID == requestID })
	if i < 0 {
		return nil
	}
	return &r.Tokens[i]
}

// MarkRevoking records that the token of a request, if there is one, is no longer the task's.
func (r *Record) MarkRevoking(requestID string) {
	if k := r.Find(requestID); k != nil && k.Status != TokenReplaced {
		k.Status = TokenRevoking
	}
}

// MarkReplaced marks the live tokens before a confirmed one as replaced, and returns all that
// are.
func (r *Record) MarkReplaced(confirmed string) []IssuedToken {
	var replaced []IssuedToken
	last := slices.IndexFunc(r.Tokens, func(k IssuedToken) bool { return k.RequestID == confirmed })
	for i := range max(last, 0) {
		k := &r.Tokens[i]
		if k.Status == TokenLive {
			k.Status = TokenReplaced
		}
		if k.Status == TokenReplaced {
			replaced = append(replaced, *k)
		}
	}
	return replaced
}

// Remove forgets the token of a request.
func (r *Record) Remove(requestID string) {
	r.Tokens = slices.DeleteFunc(r.Tokens, func(k IssuedToken) bool { return k.RequestID == requestID })
}

package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// Record is what the broker remembers of a task's tokens. It has no secret.
type Record struct {
	TaskARN string  `json:"task_arn"`
	Cluster string  `json:"cluster"`
	Tokens  []Token `json:"tokens"`
	// Writer is the term of a broker that wrote the record.
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

// Token is a token of a task, the earliest first.
type Token struct {
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

// HashOf is the hash of a secret in a record.
func HashOf(v secret.Value) string {
	hash := sha256.Sum256([]byte(v.Reveal()))
	return hex.EncodeToString(hash[:])
}

// Due reports whether the end of a token's life has passed, unless it was renewed.
func (k Token) Due(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// End is what an error states about when the token ends.
func (k Token) End() string {
	if k.Expires.IsZero() {
		return "does not expire"
	}
	return "ends at " + k.Expires.UTC().Format(time.RFC3339)
}

// Ended reports whether a token's life is over by the clock of this host.
func (k Token) Ended(now time.Time) bool { return !k.Renewable && k.Due(now) }

// Live returns the task's last live token.
func (r *Record) Live(now time.Time) (Token, bool) {
	for _, t := range slices.Backward(r.Tokens) {
		if t.Status == TokenLive && !t.Ended(now) {
			return t, true
		}
	}
	return Token{}, false
}

// Proven returns the live token whose secret has the hash of the bearer, which is empty
// without one.
func (r *Record) Proven(hash string) (Token, bool) {
	i := slices.IndexFunc(r.Tokens, func(t Token) bool { return t.Status == TokenLive && t.SecretHash == hash })
	if i < 0 || hash == "" {
		return Token{}, false
	}
	return r.Tokens[i], true
}

// Find returns a request's token for a change.
func (r *Record) Find(requestID string) *Token {
	i := slices.IndexFunc(r.Tokens, func(t Token) bool { return t.RequestID == requestID })
	if i < 0 {
		return nil
	}
	return &r.Tokens[i]
}

// Revoking records that the token of a request, if there is one, is no longer the task's.
func (r *Record) Revoking(requestID string) {
	if k := r.Find(requestID); k != nil && k.Status != TokenReplaced {
		k.Status = TokenRevoking
	}
}

// Replace marks the live tokens before a confirmed one as replaced, and returns all that
// are.
func (r *Record) Replace(confirmed string) []Token {
	var replaced []Token
	last := slices.IndexFunc(r.Tokens, func(k Token) bool { return k.RequestID == confirmed })
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
	r.Tokens = slices.DeleteFunc(r.Tokens, func(k Token) bool { return k.RequestID == requestID })
}

// ErrStale means that another broker changed a record, or leads.
var ErrStale = errors.New("another broker changed the record of the task, or leads")

// Store keeps records.
type Store interface {
	// Load returns all records.
	Load(ctx context.Context) ([]Record, error)
	// Read returns the record of a task: one without version if there is none.
	Read(ctx context.Context, taskARN string) (Record, error)
	// Save replaces the task's record if it still has the record's version, and deletes it
	// if there are no tokens. It returns the new version, or ErrStale.
	Save(ctx context.Context, r Record) (version uint64, err error)
}

// Memory is a Store for a single broker: after a restart the broker does not know the
// tokens that it gave, and they end with their TTL.
type Memory struct {
	mu      sync.Mutex
	records map[string]Record
	version uint64
}

// Load implements Store.
func (m *Memory) Load(context.Context) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Record
	for _, r := range m.records {
		all = append(all, r.Clone())
	}
	return all, nil
}

// Read implements Store.
func (m *Memory) Read(_ context.Context, taskARN string) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[taskARN]
	return r.Clone(), nil
}

// Save implements Store.
func (m *Memory) Save(_ context.Context, r Record) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records[r.TaskARN].Version != r.Version {
		return 0, ErrStale
	}
	if len(r.Tokens) == 0 {
		delete(m.records, r.TaskARN)
		return 0, nil
	}
	if m.records == nil {
		m.records = map[string]Record{}
	}
	m.version++
	r.Version, r.Tokens = m.version, slices.Clone(r.Tokens)
	m.records[r.TaskARN] = r
	return r.Version, nil
}

// KV is a Store in Consul's KV, shared by the brokers of one name.
type KV struct {
	// Client has a token with write on Prefix.
	Client *api.Client
	// Prefix ends in a slash.
	Prefix string
	// Lock is the key that the leader has locked, and Session its session: a broker that
	// has lost the lock writes nothing. Without Session nothing is checked.
	Lock    string
	Session func() string
}

func (k KV) key(taskARN string) string {
	sum := sha256.Sum256([]byte(taskARN))
	return k.Prefix + taskARN[strings.LastIndexByte(taskARN, '/')+1:] + "-" + hex.EncodeToString(sum[:4])
}

// Load implements Store. The read is consistent: a deposed leader's last write counts.
func (k KV) Load(ctx context.Context) ([]Record, error) {
	pairs, _, err := k.Client.KV().List(k.Prefix, consistent(ctx))
	if err != nil {
		return nil, fmt.Errorf("read the records of tasks below %s: %w", k.Prefix, k.explain(err))
	}
	var all []Record
	for _, p := range pairs {
		r, err := decode(p)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Read implements Store.
func (k KV) Read(ctx context.Context, taskARN string) (Record, error) {
	p, _, err := k.Client.KV().Get(k.key(taskARN), consistent(ctx))
	switch {
	case err != nil:
		return Record{}, fmt.Errorf("read the record of task %s: %w", taskARN, k.explain(err))
	case p == nil:
		return Record{}, nil
	}
	return decode(p)
}

func consistent(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx)
}

func decode(p *api.KVPair) (Record, error) {
	var r Record
	if err := json.Unmarshal(p.Value, &r); err != nil {
		return r, fmt.Errorf("record %s: %w: delete the key", p.Key, err)
	}
	r.Version = p.ModifyIndex
	return r, nil
}

// Save implements Store.
func (k KV) Save(ctx context.Context, r Record) (uint64, error) {
	key := k.key(r.TaskARN)
	op := &api.KVTxnOp{Verb: api.KVCAS, Key: key, Index: r.Version}
	if len(r.Tokens) == 0 {
		if op.Verb = api.KVDeleteCAS; r.Version == 0 {
			return 0, nil
		}
	} else {
		var err error
		if op.Value, err = json.Marshal(r); err != nil {
			return 0, err
		}
	}
	return k.write(ctx, r.TaskARN, op)
}

// write performs op if the broker has the lock, and returns the key's new version.
func (k KV) write(ctx context.Context, taskARN string, op *api.KVTxnOp) (uint64, error) {
	ops := api.TxnOps{{KV: op}}
	if k.Session != nil {
		session := k.Session()
		if session == "" {
			return 0, ErrStale
		}
		ops = api.TxnOps{{KV: &api.KVTxnOp{Verb: api.KVCheckSession, Key: k.Lock, Session: session}}, {KV: op}}
	}
	ok, answer, _, err := k.Client.Txn().Txn(ops, (&api.QueryOptions{}).WithContext(ctx))
	switch {
	case err != nil:
	case !ok && answer != nil && len(answer.Errors) > 0 && strings.Contains(answer.Errors[0].What, "Permission denied"):
		err = api.StatusError{Code: http.StatusForbidden, Body: answer.Errors[0].What} // the transaction's status is 409
	case !ok:
		err = ErrStale
	}
	if err != nil {
		return 0, fmt.Errorf("write the record of task %s: %w", taskARN, k.explain(err))
	}
	for _, result := range answer.Results { // none of a deletion
		if result.KV != nil && result.KV.Key == op.Key {
			return result.KV.ModifyIndex, nil
		}
	}
	return 0, nil
}

func (k KV) explain(err error) error {
	return consulutil.Advise(consulutil.Needs(err, `key_prefix "`+k.Prefix+`" { policy = "write" }`))
}

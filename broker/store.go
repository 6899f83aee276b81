package broker

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

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/consulutil"
)

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

// MemoryStore is a Store for a single broker: after a restart the broker does not know the
// tokens that it gave, and they end with their TTL.
type MemoryStore struct {
	mu      sync.Mutex
	records map[string]Record
	version uint64
}

// Load implements Store.
func (m *MemoryStore) Load(context.Context) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Record
	for _, r := range m.records {
		all = append(all, r.Clone())
	}
	return all, nil
}

// Read implements Store.
func (m *MemoryStore) Read(_ context.Context, taskARN string) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[taskARN]
	return r.Clone(), nil
}

// Save implements Store.
func (m *MemoryStore) Save(_ context.Context, r Record) (uint64, error) {
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

// KVStore is a Store in Consul's KV, shared by the brokers of one name.
type KVStore struct {
	// Client has a token with write on Prefix.
	Client *api.Client
	// Prefix ends in a slash.
	Prefix string
	// Lock is the key that the leader has locked, and Session its session: a broker that
	// has lost the lock writes nothing. Without Session nothing is checked.
	Lock    string
	Session func() string
}

func (k KVStore) key(taskARN string) string {
	sum := sha256.Sum256([]byte(taskARN))
	return k.Prefix + taskARN[strings.LastIndexByte(taskARN, '/')+1:] + "-" + hex.EncodeToString(sum[:4])
}

// Load implements Store. The read is consistent: a deposed leader's last write counts.
func (k KVStore) Load(ctx context.Context) ([]Record, error) {
	pairs, _, err := k.Client.KV().List(k.Prefix, consistent(ctx))
	if err != nil {
		return nil, fmt.Errorf("read the records of tasks below %s: %w", k.Prefix, k.explain(err))
	}
	var all []Record
	for _, p := range pairs {
		r, err := decodeRecord(p)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Read implements Store.
func (k KVStore) Read(ctx context.Context, taskARN string) (Record, error) {
	p, _, err := k.Client.KV().Get(k.key(taskARN), consistent(ctx))
	switch {
	case err != nil:
		return Record{}, fmt.Errorf("read the record of task %s: %w", taskARN, k.explain(err))
	case p == nil:
		return Record{}, nil
	}
	return decodeRecord(p)
}

func consistent(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx)
}

func decodeRecord(p *api.KVPair) (Record, error) {
	var r Record
	if err := json.Unmarshal(p.Value, &r); err != nil {
		return r, fmt.Errorf("record %s: %w: delete the key", p.Key, err)
	}
	r.Version = p.ModifyIndex
	return r, nil
}

// Save implements Store.
func (k KVStore) Save(ctx context.Context, r Record) (uint64, error) {
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
func (k KVStore) write(ctx context.Context, taskARN string, op *api.KVTxnOp) (uint64, error) {
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
		err = api.StatusError{Code: http.StatusForbidden,
			Body: answer.Errors[0].What} // the transaction's status is 409
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

func (k KVStore) explain(err error) error {
	return consulutil.Advise(consulutil.Needs(err, `key_prefix "`+k.Prefix+`" { policy = "write" }`))
}

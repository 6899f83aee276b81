package broker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

const testTask = "arn:aws:ecs:us-east-1:123456789012:task/shop/00000000000000000000000000000001"

func kvStore(t testing.TB, token string) KVStore {
	t.Helper()
	client, err := consulutil.NewClient(consulutil.Options{Address: startedConsul(t).HTTPAddr, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return KVStore{Client: client, Prefix: fmt.Sprintf("consul-ecs/token-broker/%s-%d/tasks/",
		strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano())}
}

// TestStores: all stores keep records in the same way.
func TestStores(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(t *testing.T) Store{
		"memory": func(*testing.T) Store { return &MemoryStore{} },
		"kv":     func(t *testing.T) Store { return kvStore(t, startedConsul(t).Token) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := store(t)
			load := func() []Record {
				all, err := s.Load(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return all
			}
			if got := load(); len(got) != 0 {
				t.Fatalf("a new store has %v", got)
			}
			r := Record{TaskARN: testTask, Cluster: "arn:aws:ecs:us-east-1:123456789012:cluster/shop",
				Tokens: []IssuedToken{{
					RequestID: "r", Accessor: "a", Status: TokenLive, SecretHash: "h", Address: "10.0.0.1", Port: 8080,
					Expires: time.Date(2026, 11, 22, 1, 2, 3, 4, time.UTC), Renewable: true,
				}}}
			var err error
			if r.Version, err = s.Save(t.Context(), r); err != nil || r.Version == 0 {
				t.Fatalf("version %d, %v", r.Version, err)
			}
			if diff := cmp.Diff([]Record{r}, load()); diff != "" {
				t.Errorf("(-saved +loaded)\n%s", diff)
			}
			stale := r
			stale.Version = 0
			if _, err := s.Save(t.Context(), stale); !errors.Is(err, ErrStale) {
				t.Errorf("a record that exists was made again: %v", err)
			}
			first := r.Version
			r.Tokens[0].Status = TokenRevoking
			if r.Version, err = s.Save(t.Context(), r); err != nil || r.Version == first {
				t.Errorf("version %d after %d, %v", r.Version, first, err)
			}
			stale.Version = first
			if _, err := s.Save(t.Context(), stale); !errors.Is(err, ErrStale) {
				t.Errorf("an older version was saved: %v", err)
			}
			r.Tokens = nil
			if r.Version, err = s.Save(t.Context(), r); err != nil || r.Version != 0 {
				t.Errorf("after the deletion version %d, %v", r.Version, err)
			}
			testkit.Equal(t, "records after the deletion", len(load()), 0)
		})
	}
}

// A broker that was paused writes nothing once another one has the lock.
func TestStoreWritesWithTheLockOnly(t *testing.T) {
	t.Parallel()
	s := kvStore(t, startedConsul(t).Token)
	session, _, err := s.Client.Session().CreateNoChecks(&api.SessionEntry{TTL: "10m"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Lock = strings.TrimSuffix(s.Prefix, "tasks/") + "leader"
	s.Session = func() string { return session }
	r := Record{TaskARN: testTask, Tokens: []IssuedToken{{RequestID: "r"}}}
	if _, err := s.Save(t.Context(), r); !errors.Is(err, ErrStale) {
		t.Errorf("without the lock: %v", err)
	}
	if ok, _, err := s.Client.KV().Acquire(&api.KVPair{Key: s.Lock, Session: session}, nil); !ok || err != nil {
		t.Fatal(err)
	}
	if r.Version, err = s.Save(t.Context(), r); err != nil || r.Version == 0 {
		t.Errorf("with the lock: version %d, %v", r.Version, err)
	}
	if _, err := s.Client.Session().Destroy(session, nil); err != nil {
		t.Fatal(err)
	}
	r.Tokens = nil
	if _, err := s.Save(t.Context(), r); !errors.Is(err, ErrStale) {
		t.Errorf("after the end of the session: %v", err)
	}
	s.Session = func() string { return "" }
	if _, err := s.Save(t.Context(), r); !errors.Is(err, ErrStale) {
		t.Errorf("without a session: %v", err)
	}
}

func TestStoreNamesTheRuleItNeeds(t *testing.T) {
	t.Parallel()
	server := startedConsul(t)
	client, err := consulutil.NewClient(consulutil.Options{Address: server.HTTPAddr, Token: server.Token})
	if err != nil {
		t.Fatal(err)
	}
	s := kvStore(t, testkit.Grant(t, client, `key_prefix "" { policy = "read" }`))
	_, err = s.Save(t.Context(), Record{TaskARN: testTask, Tokens: []IssuedToken{{RequestID: "r"}}})
	testkit.ErrorContains(t, err, `key_prefix "`+s.Prefix+`" { policy = "write" }`)
	testkit.Equal(t, "class of the error", consulutil.Classify(err), retry.Permanent)
	if errors.Is(err, ErrStale) {
		t.Errorf("%v is ErrStale", err)
	}
}

func TestRecordThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	s := kvStore(t, startedConsul(t).Token)
	if _, err := s.Client.KV().Put(&api.KVPair{Key: s.Prefix + "x", Value: []byte("{")}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), s.Prefix+"x") {
		t.Errorf("got %v, want the key", err)
	}
}

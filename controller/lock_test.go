package controller

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func newLock(t *testing.T, consul consulutil.Options, cluster, partition string) *consulutil.Lock {
	t.Helper()
	l, err := NewLock(consulutil.LockOptions{Consul: consul, Log: hclog.New(&hclog.LoggerOptions{Output: t.Output()})},
		cluster, partition, "")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// standbyIgnored waits for the lock.
func standbyIgnored(string) error { return nil }

func TestLockKey(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:ecs:us-west-2:111122223333:cluster/mesh"
	if got, want := LockKey(arn, "", ""),
		"consul-ecs/controller/arn:aws:ecs:us-west-2:111122223333:cluster/mesh/leader"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := LockKey(arn, "team", ""),
		"consul-ecs/controller/arn:aws:ecs:us-west-2:111122223333:cluster/mesh/team/leader"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := LockKey(arn, "team", "agentless"),
		"consul-ecs/controller/arn:aws:ecs:us-west-2:111122223333:cluster/mesh/team/agentless/leader"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLockWithPartitions: key and session are in the partition default, which exists
// before the controller's does; without partitions requests name none.
func TestLockWithPartitions(t *testing.T) {
	t.Parallel()
	for partition, want := range map[string]string{"": " ", "team": "default default"} {
		t.Run("partition "+partition, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var requests []string
			pair := "[]" // the key, which is read while the lock is held
			l := newLock(t, consulutil.Options{
				Address: "192.0.2.1:8500",
				Wrap: func(http.RoundTripper) http.RoundTripper {
					return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
						q := r.URL.Query()
						if q.Get("index") != "" {
							<-r.Context().Done()
							return nil, r.Context().Err()
						}
						mu.Lock()
						defer mu.Unlock()
						if got := q.Get("partition") + " " + q.Get("ns"); got != want {
							t.Errorf("%s %s in %q, want %q", r.Method, r.URL.Path, got, want)
						}
						body := "true"
						switch {
						case q.Has("acquire"):
							pair = fmt.Sprintf(`[{"Session": "s", "Flags": %d}]`, uint64(api.LockFlagValue))
						case strings.HasPrefix(r.URL.Path, "/v1/session/create"):
							body = `{"ID": "s"}`
						case r.Method == http.MethodGet:
							body = pair
						}
						if r.Method != http.MethodGet {
							path, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/consul-ecs")
							requests = append(requests, path)
						}
						return &http.Response{
							StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(body)),
							Header: http.Header{"X-Consul-Index": {"7"}, "X-Consul-Lastcontact": {"0"}},
						}, nil
					})
				},
			}, "c", partition)
			if err := l.Lead(t.Context(), standbyIgnored, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if want := []string{"session/create", "kv", "kv", "session/destroy/s"}; !slices.Equal(requests, want) {
				t.Errorf("writes %q, want %q", requests, want)
			}
		})
	}
}

// TestLeadershipInAPartition: the community server has none, and the error names the flag.
func TestLeadershipInAPartition(t *testing.T) {
	t.Parallel()
	server := require(t)
	l := newLock(t, consulutil.Options{Address: server.HTTPAddr, Token: server.Token}, testkit.UniqueCluster(t), "team")
	err := l.Lead(t.Context(), standbyIgnored, nil)
	testkit.ErrorContains(t, err, "leave out -partitions-enabled")
	testkit.Equal(t, "kind of the error", consulutil.Classify(err), retry.Permanent)
}

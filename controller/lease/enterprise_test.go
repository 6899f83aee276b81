package lease

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// TestLeadWithPartitions: key and session are in the partition default, which is
// there before the controller's is; without partitions nothing is said of them.
func TestLeadWithPartitions(t *testing.T) {
	t.Parallel()
	for partition, want := range map[string]string{"": "", "default": "partition=default ns=default"} {
		t.Run("partition "+partition, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var seen []string
			pair := "[]" // the key, which Lead watches from its own goroutine
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				mu.Lock()
				if q.Has("acquire") {
					pair = `[{"Session": "s"}]`
				}
				found := pair
				if q.Get("index") == "" {
					what, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/consul-ecs")
					seen = append(seen, strings.TrimSpace(r.Method+" "+what+" "+scopeOf(q.Get("partition"), q.Get("ns"))))
				}
				mu.Unlock()
				switch {
				case strings.HasPrefix(r.URL.Path, "/v1/session/create"):
					io.WriteString(w, `{"ID": "s"}`)
				case r.Method == http.MethodPut:
					io.WriteString(w, "true")
				case q.Get("index") != "":
					<-r.Context().Done()
				default:
					w.Header().Set("X-Consul-Index", "7")
					io.WriteString(w, found)
				}
			}))
			t.Cleanup(server.Close)
			c, err := newCandidate(server.URL, "x", "consul-ecs/leader", "x", hclog.NewNullLogger())
			if err != nil {
				t.Fatal(err)
			}
			c.Partition = partition
			if err := c.Lead(t.Context(), nobody, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			var expected []string
			for _, request := range []string{"GET kv", "PUT session/create", "PUT kv", "PUT kv", "PUT session/destroy/s"} {
				expected = append(expected, strings.TrimSpace(request+" "+want))
			}
			seen = slices.DeleteFunc(seen, func(s string) bool { return s == expected[0] })
			if !slices.Equal(seen, expected[1:]) {
				t.Errorf("requests %q, want %q", seen, expected)
			}
		})
	}
}

func scopeOf(partition, namespace string) string {
	if partition == "" && namespace == "" {
		return ""
	}
	return "partition=" + partition + " ns=" + namespace
}

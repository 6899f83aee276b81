package lease

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// runner is a candidate in a process of its own. Its requests pass through a
// proxy that counts its writes.
type runner struct {
	*testkit.Process
	writes *atomic.Int64
}

func start(t *testing.T, key, name string) runner {
	t.Helper()
	target, err := url.Parse("http://" + secured.Require(t).HTTPAddr)
	if err != nil {
		t.Fatal(err)
	}
	r := runner{writes: new(atomic.Int64)}
	work := "work/" + t.Name()
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.ErrorLog = hclog.NewNullLogger().StandardLogger(nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, work) {
			r.writes.Add(1)
		}
		forward.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	r.Process = testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.SelfArgs("candidate", server.URL, key, work, name)...)
	return r
}

func (r runner) works(t *testing.T) {
	t.Helper()
	before := r.writes.Load()
	testkit.Eventually(t, "the leader writes", func() bool { return r.writes.Load() > before })
}

// TestTakeOverAfterKill: a leader that nobody could say goodbye for.
func TestTakeOverAfterKill(t *testing.T) {
	t.Parallel()
	key := uniqueKey(t)
	first := start(t, key, "first")
	first.Expect("leads")
	first.works(t)
	second := start(t, key, "second")
	first.Signal(syscall.SIGKILL)
	took := testkit.Within(t, takesOver, "the second leads", func() bool { return second.writes.Load() > 0 })
	t.Logf("killed, and taken over after %.1f s", took.Seconds())
	if took < LockDelay {
		t.Error("earlier than the delay of the lock")
	}

	// Orderly, there is nothing to wait for.
	third := start(t, key, "third")
	second.Stdin.Close()
	if code := second.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	ended := time.Now()
	third.Expect("leads")
	t.Logf("ended, and taken over after %.1f s", time.Since(ended).Seconds())
	if took := time.Since(ended); took > undelayed {
		t.Errorf("taken over %s after an orderly end", took)
	}
}

// TestPausedLeaderDoesNoHarm: it is stopped for longer than its session lives,
// and another leads. When it goes on it finds out before it writes: at most the
// one request that its one writer had begun.
func TestPausedLeaderDoesNoHarm(t *testing.T) {
	t.Parallel()
	key := uniqueKey(t)
	first := start(t, key, "first")
	first.Expect("leads")
	first.works(t)
	second := start(t, key, "second")
	first.Signal(syscall.SIGSTOP)
	testkit.Within(t, takesOver, "the second leads", func() bool { return second.writes.Load() > 0 })
	before := first.writes.Load()
	first.Signal(syscall.SIGCONT)
	first.Expect("refused")
	line := first.Line()
	if !strings.HasPrefix(line, "ended: not the leader any more: ") {
		t.Errorf("the first says %q", line)
	}
	t.Log(line)
	second.works(t)
	if n := first.writes.Load() - before; n > 1 {
		t.Errorf("%d writes of the deposed leader", n)
	}
	if got := holder(t, key); got != "second" {
		t.Errorf("%q holds the lock", got)
	}
}

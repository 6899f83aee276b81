package network

import (
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestManyTasksAtOnce(t *testing.T) {
	f := newFabric(t, Options{})
	const tasks = 200
	start := time.Now()
	var wg sync.WaitGroup
	namespaces := make([]*Namespace, tasks)
	for i := range tasks {
		wg.Go(func() {
			n, err := f.Attach(strconv.Itoa(i))
			if err != nil {
				t.Error(err)
				return
			}
			namespaces[i] = n
		})
	}
	wg.Wait()
	t.Logf("%d tasks attached in %s", tasks, time.Since(start))
	if t.Failed() {
		return
	}
	seen := map[string]bool{}
	for _, n := range namespaces {
		seen[n.IP.String()] = true
	}
	if len(seen) != tasks {
		t.Errorf("%d distinct addresses, want %d", len(seen), tasks)
	}
	talkAcross(t, namespaces)
	start = time.Now()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("closed in %s", time.Since(start))
}

// talkAcross lets every task talk to twenty others: more pairs than a host's
// neighbour table has room for.
func talkAcross(t *testing.T, namespaces []*Namespace) {
	t.Helper()
	for _, n := range namespaces {
		serve(t, n, n.IP.String()+":80", n.IP.String())
	}
	start := time.Now()
	var wg sync.WaitGroup
	for i, n := range namespaces {
		wg.Go(func() {
			for k := range 20 {
				to := namespaces[(i+1+7*k)%len(namespaces)].IP.String()
				if got, err := ask(n, to+":80"); got != to || err != nil {
					t.Errorf("%s to %s: %q, %v", n.IP, to, got, err)
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d connections in %s", 20*len(namespaces), time.Since(start))
}

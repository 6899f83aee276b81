package receiver

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// faults is a schedule of outages: windows in which each request and each push may fail
// in a way that the seed decides. Windows are short against the last third of a token's
// life, so that no call may fail for want of a token.
type faults struct {
	mu     sync.Mutex
	random *rand.Rand
	start  time.Time
	ttl    time.Duration
	// lostTokens counts tokens that the receiver never got.
	lostTokens int
	count      int
}

// open reports whether this request fails: in windows of a twelfth of a token's life,
// with as much time between them.
func (f *faults) open() bool {
	fails := time.Since(f.start)%(f.ttl/6) < f.ttl/12 && f.random.IntN(10) < 7
	if fails {
		f.count++
	}
	return fails
}

func (f *faults) request(op string) (*http.Response, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open() {
		return nil, false, nil
	}
	switch f.random.IntN(8) {
	case 0:
		if op == "POST /v1/unwrap" {
			f.lostTokens++
		}
		return nil, true, nil
	case 1:
		return unreachable()
	case 2:
		return refusal(http.StatusTooManyRequests, "1"), false, nil
	case 3:
		return refusal(http.StatusTooEarly, ""), false, nil
	case 4:
		if op != "POST /v1/unwrap" {
			return refusal(http.StatusNotFound, ""), false, nil
		}
		return refusal(http.StatusServiceUnavailable, "2"), false, nil
	case 5:
		return refusal(http.StatusBadGateway, ""), false, nil
	case 6: // an answer that is not the broker's
		return &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{}}, false, nil
	default:
		return nil, false, errHang
	}
}

func (f *faults) push() (before, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open() {
		return false, false
	}
	return f.random.IntN(4) == 0, f.random.IntN(4) == 0
}

func runSchedule(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 21))
	w := newFixture(t)
	defer w.close()
	w.ttl = time.Duration(2+random.IntN(9)) * time.Minute
	w.revokeFail = random.IntN(3)
	stop := w.start()
	synctest.Wait()
	f := &faults{random: random, start: time.Now(), ttl: w.ttl}
	w.mu.Lock()
	w.fault, w.pushFault = f.request, f.push
	w.mu.Unlock()
	for range 6 {
		if calls, failed := w.callEvery(time.Second, w.ttl/2); failed > 0 {
			t.Errorf("seed %d: %d of %d calls failed", seed, failed, calls)
		}
	}
	w.mu.Lock()
	w.stopped, w.fault, w.pushFault = true, nil, nil
	w.mu.Unlock()
	if err := stop(); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	<-time.After(2 * time.Minute) // the life of a handle
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := w.liveTokens(); n > f.lostTokens {
		t.Errorf("seed %d: %d tokens live, %d were lost", seed, n, f.lostTokens)
	}
	if w.most() > 2+f.lostTokens {
		t.Errorf("seed %d: %d tokens lived at one time, %d were lost", seed, w.most(), f.lostTokens)
	}
	w.wantNoSecrets()
	if t.Failed() {
		t.Logf("after %d faults: %s", f.count, w.log)
	}
}

func schedules(t *testing.T, from, to uint64) {
	t.Parallel()
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runSchedule(t, seed) })
		})
	}
}

func TestNoCallFailsUnderFaults(t *testing.T) { schedules(t, 0, 30) }

func TestNoCallFailsUnderThousandsOfFaults(t *testing.T) {
	testkit.Long(t)
	schedules(t, 30, 2000)
}

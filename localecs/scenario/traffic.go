package scenario

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// requestTimeout bounds one request of the traffic; longer is a failure.
const requestTimeout = 10 * time.Second

// maxFailures is how many failures are kept with their text.
const maxFailures = 10

// firstAnswerLimit bounds the wait for the first answer.
const firstAnswerLimit = 10 * time.Second

// traffic sends requests at a steady rate until it is stopped. Each request has
// a connection of its own and is never retried, so every loss counts.
type traffic struct {
	client    *http.Client
	url       string
	onFailure func(failure)
	// end and done are set by start.
	end  context.CancelFunc
	done chan struct{}

	mu       sync.Mutex
	answered int
	failed   int
	failures []failure
	slowest  time.Duration
}

type failure struct {
	At  time.Time
	Err string
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func newTraffic(url string, dial dialFunc, onFailure func(failure)) *traffic {
	return &traffic{
		client: &http.Client{
			Timeout:   requestTimeout,
			Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
		},
		url:       url,
		onFailure: onFailure,
	}
}

// awaitFirst asks until the first answer: a moment passes between Consul's
// knowing an instance and the caller's proxy knowing it, and that is start-up,
// not loss. Nothing is counted.
func (t *traffic) awaitFirst(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, firstAnswerLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := t.request()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// start begins the steady rate, in requests a second.
func (t *traffic) start(ctx context.Context, rate int) {
	ctx, t.end = context.WithCancel(ctx)
	t.done = make(chan struct{})
	go t.run(ctx, time.Second/time.Duration(rate))
}

func (t *traffic) run(ctx context.Context, every time.Duration) {
	defer close(t.done)
	var requests sync.WaitGroup
	defer requests.Wait()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			requests.Go(func() {
				start := time.Now()
				err := t.request()
				if f, bad := t.count(start, err); bad {
					t.onFailure(f)
				}
			})
		}
	}
}

// request is not bound to the traffic's context: what was sent is waited for.
func (t *traffic) request() error {
	resp, err := t.client.Get(t.url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return nil
}

func (t *traffic) count(start time.Time, err error) (failure, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slowest = max(t.slowest, time.Since(start))
	if err == nil {
		t.answered++
		return failure{}, false
	}
	t.failed++
	f := failure{At: time.Now(), Err: err.Error()}
	if len(t.failures) < maxFailures {
		t.failures = append(t.failures, f)
	}
	return f, true
}

// stop ends the traffic and waits for the requests under way. It may be called
// twice, and before start, and on nil.
func (t *traffic) stop() {
	if t == nil || t.end == nil {
		return
	}
	t.end()
	<-t.done
}

// totals are the requests finished so far.
func (t *traffic) totals() (answered, failed int, slowest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answered, t.failed, t.slowest
}

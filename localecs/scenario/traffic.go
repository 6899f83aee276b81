package scenario

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// requestTimeout bounds one request of the traffic; longer is a failure.
const requestTimeout = 10 * time.Second

// FirstAnswerLimit bounds the wait for the first answer.
const FirstAnswerLimit = 10 * time.Second

// Stream sends requests at a steady rate until it is stopped. Each request has
// a connection of its own and is never retried, so every loss counts.
type TrafficStream struct {
	client    *http.Client
	url       string
	onFailure func(Failure)
	// Each, if any, is told of every request that counts, by several goroutines at
	// once. It is set before Start.
	Each func(Request)
	// end and done are set by Start.
	end  context.CancelFunc
	done chan struct{}

	mu       sync.Mutex
	rate     int // 0 when it does not run
	answered int
	failed   int
	first    string
	slowest  time.Duration
}

// Failure is a request that was not answered with 200.
type Failure struct {
	At  time.Time
	Err string
}

// Request is one that has ended; Err is nil when it was answered with 200. Answer is
// the beginning of what it was answered then.
type Request struct {
	Start, End time.Time
	Err        error
	Answer     string
}

// New prepares requests to url. onFailure is told of each loss, by several
// goroutines at once.
func New(url string, dial DialFunc, onFailure func(Failure)) *TrafficStream {
	return &TrafficStream{
		client: &http.Client{
			Timeout:   requestTimeout,
			Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
		},
		url:       url,
		onFailure: onFailure,
	}
}

// AwaitFirst asks until the first answer: a moment passes between Consul's
// knowing an instance and the caller's proxy knowing it, and that is start-up,
// not loss. Nothing is counted.
func (s *TrafficStream) AwaitFirst(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, FirstAnswerLimit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := s.request()
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

// Start begins the steady rate, in requests a second.
func (s *TrafficStream) Start(ctx context.Context, rate int) {
	ctx, s.end = context.WithCancel(ctx)
	s.done = make(chan struct{})
	s.setRate(rate)
	go s.run(ctx, time.Second/time.Duration(rate))
}

func (s *TrafficStream) run(ctx context.Context, every time.Duration) {
	defer close(s.done)
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
				answer, err := s.request()
				if s.Each != nil {
					s.Each(Request{Start: start, End: time.Now(), Err: err, Answer: answer})
				}
				if f, bad := s.count(start, err); bad {
					s.onFailure(f)
				}
			})
		}
	}
}

// request is not bound to the traffic's context: what was sent is waited for.
func (s *TrafficStream) request() (answer string, err error) {
	resp, err := s.client.Get(s.url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), nil
}

func (s *TrafficStream) count(start time.Time, err error) (Failure, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slowest = max(s.slowest, time.Since(start))
	if err == nil {
		s.answered++
		return Failure{}, false
	}
	s.failed++
	f := Failure{At: time.Now(), Err: err.Error()}
	if s.first == "" {
		s.first = f.Err
	}
	return f, true
}

// Stop ends the traffic and waits for the requests under way. It may be called
// twice, and before Start, and on nil.
func (s *TrafficStream) Stop() {
	if s == nil || s.end == nil {
		return
	}
	s.end()
	<-s.done
	s.setRate(0)
}

func (s *TrafficStream) setRate(rate int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rate = rate
}

// Rate is in requests a second; 0 before Start and after Stop.
func (s *TrafficStream) Rate() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rate
}

// URL is what is asked.
func (s *TrafficStream) URL() string { return s.url }

// Totals are the requests finished so far.
func (s *TrafficStream) Totals() (answered, failed int, slowest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered, s.failed, s.slowest
}

package scenario

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// requestTimeout bounds one request of the traffic; longer is a failure.
const requestTimeout = 10 * time.Second

// firstAnswerLimit bounds the wait for the first answer.
const firstAnswerLimit = 10 * time.Second

// trafficStream sends requests at a steady rate until it is stopped. Each request has
// its own connection and is never retried, so every loss counts.
type trafficStream struct {
	client *http.Client
	url    string
	each   func(trafficRequest)
	// end and done are set by Start.
	end  context.CancelFunc
	done chan struct{}

	mu       sync.Mutex
	answered int
	failed   int
	first    string
	slowest  time.Duration
}

// trafficRequest is one that has ended; Err is nil when it was answered with 200. Answer is
// the beginning of what it was answered then.
type trafficRequest struct {
	Start, End time.Time
	Err        error
	Answer     string
}

// newTraffic prepares requests to url. each is called for every request that counts,
// concurrently.
func newTraffic(url string, dial dialFunc, each func(trafficRequest)) *trafficStream {
	return &trafficStream{
		client: &http.Client{
			Timeout:   requestTimeout,
			Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
		},
		url:  url,
		each: each,
	}
}

// AwaitFirst repeats a request until the first answer: the caller's proxy learns of an
// instance a moment after Consul, and that is startup, not loss. Nothing is counted.
func (s *trafficStream) AwaitFirst(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, firstAnswerLimit)
	defer cancel()
	var last error
	err := pollUntil(ctx, func() (bool, error) {
		_, last = s.request()
		return last == nil, nil
	})
	if err != nil {
		return last
	}
	return nil
}

// Start starts the steady rate, in requests a second.
func (s *trafficStream) Start(ctx context.Context, rate int) {
	ctx, s.end = context.WithCancel(ctx)
	s.done = make(chan struct{})
	go s.run(ctx, time.Second/time.Duration(rate))
}

func (s *trafficStream) run(ctx context.Context, every time.Duration) {
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
				s.count(start, err)
				s.each(trafficRequest{Start: start, End: time.Now(), Err: err, Answer: answer})
			})
		}
	}
}

// request does not end with the traffic's context: requests under way are completed.
func (s *trafficStream) request() (answer string, err error) {
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

func (s *trafficStream) count(start time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slowest = max(s.slowest, time.Since(start))
	if err == nil {
		s.answered++
		return
	}
	s.failed++
	s.first = cmp.Or(s.first, err.Error())
}

// Stop ends the traffic and waits for the requests under way. It may be called
// twice, and before Start, and on nil.
func (s *trafficStream) Stop() {
	if s == nil || s.end == nil {
		return
	}
	s.end()
	<-s.done
}

// Phase is the result of the traffic between its start and its end.
type Phase struct {
	Name     string `json:"name"`
	Answered int    `json:"answered"`
	Failed   int    `json:"failed"`
	// Slowest is the longest request's time, a failed one's included.
	Slowest time.Duration `json:"slowest_ns"`
	// First is the text of the first loss, empty when there was none.
	First string `json:"first_failure,omitempty"`
	// Limits are what the phase was judged by.
	Limits file.Limits `json:"limits"`
	// Verdict is passed or FAILED, empty for a phase that has no limits.
	Verdict string `json:"verdict,omitempty"`
}

func (p Phase) withVerdict() Phase {
	switch {
	case !p.Limits.IsSet():
	case p.problem() == "":
		p.Verdict = view.Passed
	default:
		p.Verdict = view.Failed
	}
	return p
}

// problem returns why the phase has failed; empty if it passed. A phase without any
// answer proves nothing and has failed as well.
func (p Phase) problem() string {
	switch {
	case p.Limits.Max != nil && p.Failed > *p.Limits.Max:
		return fmt.Sprintf("%d of %d requests failed; %s may. First: %s", p.Failed, p.Answered+p.Failed, p.Limits,
			p.First)
	case p.Limits.Min != nil && p.Failed < *p.Limits.Min:
		return fmt.Sprintf("%d of %d requests failed; %s must", p.Failed, p.Answered+p.Failed, p.Limits)
	case p.Limits.IsSet() && p.Answered == 0:
		return "no request was answered"
	}
	return ""
}

// Phase returns the traffic so far as a phase of that name.
func (s *trafficStream) Phase(name string, l file.Limits) Phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Phase{Name: name, Answered: s.answered, Failed: s.failed, Slowest: s.slowest, First: s.first, Limits: l}
}

// maxReported is how many lost requests are reported one by one.
const maxReported = 10

// trafficPhases sends the traffic of a run, one phase after the other.
type trafficPhases struct {
	tasks    *TaskSet
	dial     dialFunc
	progress *progress
	observer *runRecorder    // nil for none
	reached  map[string]bool // URLs that have answered traffic
	stream   *trafficStream  // nil between the phases
	last     *trafficStream  // also after its end
	done     []Phase
}

// start starts a phase, once the first request was answered.
func (p *trafficPhases) start(ctx context.Context, t file.Traffic) error {
	url := fmt.Sprintf("http://%s/", net.JoinHostPort(p.tasks.clusterTask(t.Task).IP(), fmt.Sprint(t.Port)))
	var lost atomic.Int64
	p.stream = newTraffic(url, p.dial, func(q trafficRequest) {
		p.progress.record.request(q)
		if p.observer != nil {
			q.Answer = "" // it keeps all of them
			p.observer.Request(q)
		}
		if q.Err == nil {
			return
		}
		e := Event{Time: q.End, Kind: KindRequestFailed, Detail: q.Err.Error(), Text: "FAILED: " + q.Err.Error()}
		n := lost.Add(1)
		if n == maxReported {
			e.Text += " (more are counted only)"
		}
		if n <= maxReported {
			p.progress.emit(e)
		}
	})
	p.last = p.stream
	rate := fmt.Sprintf("%d requests a second to %s, no retries", t.Rate, url)
	// From the first answer on everything counts, in later phases too.
	if !p.reached[url] {
		start := time.Now()
		if err := p.stream.AwaitFirst(ctx); err != nil {
			return fmt.Errorf("traffic: no answer from %s within %s: %w", url, firstAnswerLimit, err)
		}
		p.reached[url] = true
		rate = fmt.Sprintf("first answer after %s; now %s", time.Since(start).Round(time.Millisecond), rate)
	}
	p.progress.emit(Event{Kind: KindTrafficBegin, Task: t.Task, Address: url, Text: rate})
	p.stream.Start(ctx, t.Rate)
	return nil
}

// end ends the phase, if there is one, and checks its limits.
func (p *trafficPhases) end(e file.EndTraffic) {
	if p.stream == nil {
		return
	}
	p.stream.Stop()
	name := cmp.Or(e.Name, fmt.Sprintf("phase %d", len(p.done)+1))
	phase := p.stream.Phase(name, e.Limits())
	p.stream = nil
	p.done = append(p.done, phase)
	text := fmt.Sprintf("%s ended: %d answered, %d failed", phase.Name, phase.Answered, phase.Failed)
	if problem := phase.problem(); problem != "" {
		p.progress.fail("%s: %s", phase.Name, problem)
		text += ": FAILED"
	}
	p.progress.emit(Event{Kind: KindTrafficEnd, Phase: phase.Name, Text: text})
}

// answered counts the requests of the present traffic.
func (p *trafficPhases) answered() int {
	if p.last == nil {
		return 0
	}
	return p.last.Phase("", file.Limits{}).Answered
}

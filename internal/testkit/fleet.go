package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Fleet is the Consul servers that thousands of clients share, in virtual time: the
// transport of clients in a bubble of testing/synctest (consulutil.Options.Wrap). Requests
// that cost something wait in one queue, first come first served. As real servers do, it
// finishes a request whose client has gone: that is how tokens and sessions get lost.
//
//	f := testkit.NewFleet(
//		testkit.Phase{For: time.Minute, Do: testkit.Refuse},
//		testkit.Phase{For: 10 * time.Second, Do: testkit.NoLeader},
//	)
//	f.Cost["acl/login"] = time.Second / 300 // 300 logins a second
//	client, err := consulutil.NewClient(consulutil.Options{Address: "10.0.0.1:8500", Wrap: f.Wrap})
//
// Fields are set before the first request.
type Fleet struct {
	// Cost is how long the servers work on a request, by its Kind. Other requests are
	// answered at once, however long the queue is.
	Cost map[string]time.Duration
	// Answers are what the servers do, by Kind, when it is a request's turn. NewFleet sets
	// those that a login needs; a kind without one is answered with 200 and "true".
	Answers map[string]func(r *http.Request, body []byte) (status int, answer string)
	// Latency is added to the answer of each request.
	Latency time.Duration

	start  time.Time
	phases []Phase

	mu      sync.Mutex
	free    time.Time // when the queue is empty
	tokens  int
	counts  map[string]*Count
	seconds map[int]int // requests by the second since start
}

// Phase is a time in which the servers do not serve. Phases follow each other from the
// creation of the fleet on; after the last one the servers serve.
type Phase struct {
	For time.Duration
	// Do answers a request in place of the servers; when it returns neither an answer nor
	// an error, or is nil, they serve it.
	Do func(*http.Request) (*http.Response, error)
	// Frozen servers are stopped: they accept requests, and serve them when they continue
	// at the end of the phase, also those whose clients have gone.
	Frozen bool
}

// Count counts the requests of one kind that got a connection.
type Count struct {
	// Received are all, Done those that the servers finished, and Lost those of them whose
	// client had gone.
	Received, Done, Lost int
}

// NewFleet returns servers that go through the phases from now on, and then serve.
func NewFleet(phases ...Phase) *Fleet {
	f := &Fleet{
		start: time.Now(), phases: phases, Cost: map[string]time.Duration{},
		counts: map[string]*Count{}, seconds: map[int]int{},
	}
	f.Answers = map[string]func(*http.Request, []byte) (int, string){
		"status/leader": func(*http.Request, []byte) (int, string) { return http.StatusOK, `"10.0.0.1:8300"` },
		"acl/login": func(*http.Request, []byte) (int, string) {
			f.tokens++
			return http.StatusOK, fmt.Sprintf(`{"AccessorID":"accessor-%d","SecretID":"secret-%[1]d"}`, f.tokens)
		},
		"acl/token": func(*http.Request, []byte) (int, string) { return http.StatusOK, `{"AccessorID":"accessor"}` },
	}
	return f
}

// Wrap takes the place of a client's transport.
func (f *Fleet) Wrap(http.RoundTripper) http.RoundTripper { return f }

// Kind returns the first two parts of a request's path: "acl/login", "session/renew".
func Kind(r *http.Request) string {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// Served returns when the servers began to serve, after the last phase.
func (f *Fleet) Served() time.Time {
	at := f.start
	for _, p := range f.phases {
		at = at.Add(p.For)
	}
	return at
}

// Count returns the requests of a kind.
func (f *Fleet) Count(kind string) Count {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *f.count(kind)
}

// Busiest returns how many requests got a connection in the busiest second.
func (f *Fleet) Busiest() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	most := 0
	for _, n := range f.seconds {
		most = max(most, n)
	}
	return most
}

func (f *Fleet) count(kind string) *Count {
	if f.counts[kind] == nil {
		f.counts[kind] = &Count{}
	}
	return f.counts[kind]
}

// RoundTrip implements http.RoundTripper.
func (f *Fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	phase, end := f.phase()
	if phase.Do != nil {
		if answer, err := phase.Do(r); answer != nil || err != nil {
			if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
				f.received(r)
			}
			return answer, err
		}
	}
	connect(r)
	f.received(r)
	from := time.Now()
	if phase.Frozen {
		from = end
	}
	return f.serve(r, body, from)
}

// phase returns the current phase and its end.
func (f *Fleet) phase() (Phase, time.Time) {
	end, now := f.start, time.Now()
	for _, p := range f.phases {
		if end = end.Add(p.For); now.Before(end) {
			return p, end
		}
	}
	return Phase{}, end
}

func (f *Fleet) received(r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count(Kind(r)).Received++
	f.seconds[int(time.Since(f.start)/time.Second)]++
}

// serve finishes a request when it is its turn, which is not before the time from.
func (f *Fleet) serve(r *http.Request, body []byte, from time.Time) (*http.Response, error) {
	f.mu.Lock()
	done := from
	if cost := f.Cost[Kind(r)]; cost > 0 {
		if f.free.Before(from) {
			f.free = from
		}
		f.free = f.free.Add(cost)
		done = f.free
	}
	f.mu.Unlock()
	done = done.Add(f.Latency)
	if !time.Now().Before(done) {
		return f.finish(r, body, false)
	}
	timer := time.NewTimer(time.Until(done))
	defer timer.Stop()
	select {
	case <-timer.C:
		return f.finish(r, body, false)
	case <-r.Context().Done():
		time.AfterFunc(time.Until(done), func() { _, _ = f.finish(r, body, true) })
		return nil, r.Context().Err()
	}
}

func (f *Fleet) finish(r *http.Request, body []byte, dropped bool) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := f.count(Kind(r))
	count.Done++
	if dropped {
		count.Lost++
	}
	if answer := f.Answers[Kind(r)]; answer != nil {
		status, text := answer(r, body)
		return Answer(status, text), nil
	}
	return Answer(http.StatusOK, "true"), nil
}

// connect reports to the client that the request has a connection.
func connect(r *http.Request) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
}

// Answer returns an answer with that status and body.
func Answer(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader([]byte(body))),
	}
}

// Refuse fails like a server that does not run.
func Refuse(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// Drop fails like an address that answers nothing, which a dial gives up after 2 s.
func Drop(r *http.Request) (*http.Response, error) {
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("i/o timeout")}
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// Hang accepts a request and never answers it.
func Hang(r *http.Request) (*http.Response, error) {
	connect(r)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// NoLeader answers like a server without a leader: it reports that it has none, and holds
// other requests for 7 s (rpc_hold_timeout).
func NoLeader(r *http.Request) (*http.Response, error) {
	connect(r)
	if Kind(r) == "status/leader" {
		return Answer(http.StatusOK, `""`), nil
	}
	timer := time.NewTimer(7 * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return Answer(http.StatusInternalServerError, "No cluster leader"), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// Refused returns a server that answers requests of the kinds, or all without any, with that
// status, such as 429.
func Refused(status int, text string, kinds ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		if len(kinds) > 0 && !slices.Contains(kinds, Kind(r)) {
			return nil, nil
		}
		connect(r)
		return Answer(status, text), nil
	}
}

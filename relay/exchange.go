package relay

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// replayLimit bounds what is kept of Envoy's requests, before a server has answered.
const replayLimit = 1 << 20

var (
	errServes = errors.New("a Consul server serves again")
	errOver   = errors.New("envoy's xDS stream has ended")
)

// answeredBy is who answers a stream.
type answeredBy int

const (
	undecided answeredBy = iota // no server has answered yet
	byServer
	byMemory
	byServerAgain // Envoy has to open another stream
)

// exchange is a stream of Envoy. A server answers it, and the memory records it. When no
// server answers in time a new Envoy, without listeners, the memory does, until a server
// would. One that has its configuration waits for a server.
type exchange struct {
	memory *memory
	w      http.ResponseWriter

	mu sync.Mutex
	by answeredBy
	// over reports that nothing may be written any more.
	over bool
	// replays reports that the requests are kept for another attempt, and for the memory: Envoy
	// has no listeners yet.
	replays bool
	// sent are Envoy's bytes that are kept, or not passed on yet; end is set after the last.
	sent []byte
	end  error
	// changed is closed and replaced with each change of sent and end.
	changed chan struct{}
	// unanswered are the requests before the memory answers, asked their types.
	unanswered []discoveryRequest
	asked      map[string]bool
	nonce      int

	requests, responses messages
	// first are the versions in the stream's first request of a type, until the first
	// response of that type.
	first map[string]map[string]string
	// unread reports that the requests are none of Envoy's, and the answers not remembered.
	unread bool
}

func newExchange(m *memory, w http.ResponseWriter) *exchange {
	x := &exchange{
		memory: m, w: w, replays: m.ready(), changed: make(chan struct{}),
		asked: map[string]bool{}, first: map[string]map[string]string{},
	}
	x.requests = messages{limit: m.limit, take: x.request}
	x.responses = messages{limit: m.limit, take: x.response}
	return x
}

// run relays the stream until it ends. relay makes an attempt with a server.
func (x *exchange) run(req *http.Request, relay func(http.ResponseWriter, *http.Request)) {
	ctx := req.Context()
	var pump sync.WaitGroup
	pump.Go(func() { x.pump(req.Body) })
	timer := time.AfterFunc(x.memory.opened(), x.remember)
	for {
		a, again := x.attempt(req)
		relay(a, again)
		a.cancel()
		if x.ended(ctx, a) || retry.Sleep(ctx, retry.Remote().Pause(x.memory.waited())) != nil {
			break
		}
	}
	timer.Stop()
	x.mu.Lock()
	x.over = true
	x.notify()
	x.mu.Unlock()
	req.Body.Close() // ends the pump
	pump.Wait()
}

// ended reports whether the stream ends after an attempt, and writes its status.
func (x *exchange) ended(ctx context.Context, a *attempt) bool {
	got := a.status()
	x.memory.refused(got.code)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.by == byServer || ctx.Err() != nil:
		return true
	case x.by == byServerAgain:
		status{unavailable, errServes.Error()}.write(x.w)
		return true
	case x.end == nil && !refusal(got.code) && (x.by == byMemory || x.replays):
		return false
	case x.by == byMemory:
		got.write(x.w)
		return true
	}
	maps.Copy(x.w.Header(), a.header)
	return true
}

// refusal reports whether a server serves, but not this Envoy.
func refusal(code string) bool {
	return slices.Contains([]string{invalidArgument, permissionDenied, unimplemented, unauthenticated}, code)
}

// pump reads Envoy's requests.
func (x *exchange) pump(body io.Reader) {
	part := make([]byte, frameSize)
	for {
		n, err := body.Read(part)
		x.push(part[:n], err)
		if err != nil {
			return
		}
	}
}

// push passes a part of the requests on, or keeps it.
func (x *exchange) push(part []byte, end error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.unread {
		if err := x.requests.write(part); err != nil {
			x.unread, x.replays = true, false
		}
	}
	if x.by != byMemory {
		x.sent = append(x.sent, part...)
	}
	x.end = end
	if x.by == undecided && len(x.sent) > replayLimit {
		x.replays = false
	}
	x.notify()
	for x.by != byMemory && !x.replays && !x.over && len(x.sent) >= frameSize {
		x.wait(x.changed)
	}
}

// notify wakes those that wait for a change. The caller holds the lock.
func (x *exchange) notify() {
	close(x.changed)
	x.changed = make(chan struct{})
}

// wait waits for a change. The caller holds the lock, which is released meanwhile.
func (x *exchange) wait(changed <-chan struct{}) {
	x.mu.Unlock()
	<-changed
	x.mu.Lock()
}

// request takes a request of Envoy. The caller holds the lock.
func (x *exchange) request(message []byte) error {
	q, err := parseRequest(message)
	if err != nil {
		return err
	}
	if _, asked := x.first[q.kind]; !asked {
		x.first[q.kind] = q.versions
		if q.versions == nil {
			x.first[q.kind] = map[string]string{}
		}
	}
	x.memory.unsubscribed(q)
	switch {
	case x.by == byMemory:
		x.answer(q)
	case q.kind == ldsType && len(q.versions) > 0:
		x.replays, x.unanswered = false, nil
	case x.replays:
		x.unanswered = append(x.unanswered, q)
	}
	return nil
}

// response takes a response of a server.
func (x *exchange) response(message []byte) error {
	r, err := parseResponse(message)
	if err != nil {
		return err
	}
	x.mu.Lock()
	initial := x.first[r.kind]
	if initial != nil {
		x.first[r.kind] = nil
	}
	x.mu.Unlock()
	return x.memory.update(r, initial)
}

// remember lets the memory answer, if no server has.
func (x *exchange) remember() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by != undecided || x.over || !x.replays || !x.memory.ready() {
		return
	}
	x.by = byMemory
	x.memory.answers()
	header := x.w.Header()
	header.Set("Content-Type", "application/grpc")
	for _, q := range x.unanswered {
		x.answer(q)
	}
	x.unanswered = nil
}

// answer answers a request from the memory. The caller holds the lock.
func (x *exchange) answer(q discoveryRequest) {
	if x.over {
		return
	}
	if q.rejected != "" {
		x.memory.log.Warn("Envoy rejected resources that it had got before", logkey.Reason, q.rejected)
	}
	first := !x.asked[q.kind]
	x.asked[q.kind] = true
	if r, ok := x.memory.answer(q, first); ok {
		x.nonce++
		// An error is Envoy's end, which the request's context has, too.
		_ = writeResponse(x.w, r, strconv.Itoa(x.nonce))
	}
	_ = http.NewResponseController(x.w).Flush()
}

// attempt is the part of one server in an exchange: what it is asked, and where it answers.
type attempt struct {
	*exchange
	cancel context.CancelFunc
	done   <-chan struct{}
	// header is the answer's, until live: then it is Envoy's.
	header http.Header
	live   bool
	served bool
	// read is how much of the requests was read, closed ends that.
	read   int
	closed bool
}

// attempt returns the next attempt, and Envoy's request for it, from the beginning.
func (x *exchange) attempt(req *http.Request) (*attempt, *http.Request) {
	ctx, cancel := context.WithCancel(req.Context())
	a := &attempt{exchange: x, header: http.Header{}, cancel: cancel, done: ctx.Done()}
	req = req.WithContext(ctx)
	req.Body = (*requestBody)(a)
	return a, req
}

// status returns how the attempt ended, as far as it is known.
func (a *attempt) status() status {
	got, ok := readStatus(a.Header())
	if !ok {
		h := a.Header()
		got, _ = readStatus(http.Header{
			statusHeader: h[http.TrailerPrefix+statusHeader], messageHeader: h[http.TrailerPrefix+messageHeader],
		})
	}
	return got
}

// Header returns the header, and after a Write the trailer, of the answer.
func (a *attempt) Header() http.Header {
	if a.live {
		return a.w.Header()
	}
	return a.header
}

// WriteHeader does nothing: the status of gRPC is in the trailer.
func (a *attempt) WriteHeader(int) {}

// Write passes a part of the answer on to Envoy. It is an error when the memory answers:
// then Envoy has to open another stream.
func (a *attempt) Write(part []byte) (int, error) {
	if err := a.begin(); err != nil {
		return 0, err
	}
	if !a.served {
		a.served = true
		a.memory.served()
	}
	a.mu.Lock()
	unread := a.unread
	a.mu.Unlock()
	if !unread && a.memory.remembers() {
		if err := a.responses.write(part); err != nil {
			a.memory.forget(err)
		}
	}
	return a.w.Write(part)
}

// FlushError sends what was written. A header alone is held back as long as the memory may
// answer in the server's place.
func (a *attempt) FlushError() error {
	if !a.live {
		a.mu.Lock()
		held := a.replays
		a.mu.Unlock()
		if held {
			return nil
		}
		if err := a.begin(); err != nil {
			return err
		}
	}
	return http.NewResponseController(a.w).Flush()
}

// begin makes the server the one that answers.
func (a *attempt) begin() error {
	if a.live {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.over:
		return errOver
	case a.by != undecided:
		a.by = byServerAgain
		a.memory.served()
		a.cancel() // before the error, which is not the server's
		return errServes
	}
	a.by, a.live, a.replays, a.unanswered = byServer, true, false, nil
	maps.Copy(a.w.Header(), a.header)
	a.notify()
	return nil
}

// requestBody is what an attempt reads of Envoy's requests.
type requestBody attempt

// Read waits for a part.
func (b *requestBody) Read(part []byte) (int, error) {
	x := b.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		select {
		case <-b.done: // what is kept belongs to the attempt after this one
			b.closed = true
		default:
		}
		if !b.closed && !x.replays && b.read > 0 {
			x.sent, b.read = append(x.sent[:0], x.sent[b.read:]...), 0
			x.notify()
		}
		switch {
		case b.closed:
			return 0, errOver
		case b.read < len(x.sent):
			n := copy(part, x.sent[b.read:])
			b.read += n
			return n, nil
		case x.end != nil:
			return 0, x.end
		}
		changed := x.changed
		x.mu.Unlock()
		select {
		case <-changed:
		case <-b.done:
		}
		x.mu.Lock()
	}
}

// Close ends the reads.
func (b *requestBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.notify()
	return nil
}

package relay

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	cdsType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	edsType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// clusters, endpoints and listeners are what Envoy needs to serve.
var (
	clusters  = discoveryResponse{kind: cdsType, resources: []resource{one("api", "1", "tls")}}
	endpoints = discoveryResponse{kind: edsType, resources: []resource{one("api", "1", "10.0.0.1")}}
	listeners = discoveryResponse{kind: ldsType, resources: []resource{
		one("public_listener", "1", "filters"), one("api:127.0.0.1:1", "1", "route"),
	}}
)

// peer is an Envoy at one stream, and the ResponseWriter of that.
type peer struct {
	t      *testing.T
	memory *memory
	cancel context.CancelFunc
	send   *io.PipeWriter
	ended  chan struct{}

	mu     sync.Mutex
	header http.Header
	answer bytes.Buffer
}

func (p *peer) Header() http.Header { return p.header }
func (p *peer) WriteHeader(int)     {}
func (p *peer) Flush()              {}
func (p *peer) Write(part []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answer.Write(part)
}

// open opens a stream, which server answers.
func open(t *testing.T, m *memory, server http.HandlerFunc) *peer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	body, send := io.Pipe()
	p := &peer{t: t, memory: m, cancel: cancel, send: send, ended: make(chan struct{}), header: http.Header{}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://relay"+deltaMethod, body)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		newExchange(m, p).run(req, server)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
	})
	return p
}

// asks sends a request.
func (p *peer) asks(q discoveryRequest) {
	p.t.Helper()
	if _, err := p.send.Write(framed(asking(q))); err != nil {
		p.t.Fatal(err)
	}
}

// got returns the responses since the last call, after a time.
func (p *peer) got(after time.Duration) (all []discoveryResponse) {
	p.t.Helper()
	<-time.After(after)
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	messages, err := cut(p.answer.Bytes(), 1<<20, 1<<20)
	if err != nil {
		p.t.Fatal(err)
	}
	p.answer.Reset()
	for _, message := range messages {
		r, err := parseResponse(message)
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func (p *peer) wants(after time.Duration, want ...discoveryResponse) {
	p.t.Helper()
	if got := p.got(after); !reflect.DeepEqual(got, want) {
		p.t.Errorf("got %+v, want %+v", got, want)
	}
}

// status waits for the end of the stream.
func (p *peer) status() string {
	p.t.Helper()
	<-p.ended
	got, ok := readStatus(p.header)
	if !ok {
		return p.header.Get(http.TrailerPrefix + statusHeader)
	}
	return got.code
}

// sending returns a server that sends the responses when it has got a request.
func sending(t *testing.T, responses ...discoveryResponse) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if _, err := req.Body.Read(make([]byte, 1<<10)); err != nil {
			return
		}
		for _, r := range responses {
			if _, err := w.Write(sent(t, r)); err != nil {
				return
			}
		}
		<-req.Context().Done()
	}
}

// silent serves as a server that answers nothing.
func silent(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }

func newLog() (*memory, *strings.Builder) {
	log := new(strings.Builder)
	return newMemory(hclog.New(&hclog.LoggerOptions{Output: log, DisableTime: true})), log
}

// remembering returns the memory of an Envoy that received everything and then lost its stream with the server.
func remembering(t *testing.T) (*memory, *strings.Builder) {
	t.Helper()
	m, log := newLog()
	p := open(t, m, sending(t, clusters, endpoints, listeners))
	p.asks(discoveryRequest{kind: cdsType})
	p.wants(0, clusters, endpoints, listeners)
	p.cancel()
	<-p.ended
	return m, log
}

// starts lets a new Envoy ask for everything, as it does.
func (p *peer) starts(wait time.Duration) {
	p.t.Helper()
	p.asks(discoveryRequest{kind: cdsType})
	p.wants(wait, clusters)
	p.asks(discoveryRequest{kind: edsType, subscribe: []string{"api"}})
	p.wants(0, endpoints)
	p.asks(discoveryRequest{kind: ldsType, subscribe: []string{"*"}})
	p.wants(0, discoveryResponse{kind: ldsType, resources: []resource{listeners.resources[1], listeners.resources[0]}})
}

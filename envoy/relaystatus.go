package envoy

import (
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
)

// Codes of gRPC, as their header has them.
const (
	permissionDenied = "7"
	exhausted        = "8"
	unimplemented    = "12"
	unavailable      = "14"
	unauthenticated  = "16"
)

const (
	statusHeader  = "Grpc-Status"
	messageHeader = "Grpc-Message"
)

// status is how gRPC ends a call.
type status struct{ code, message string }

// readStatus reports whether a header, or a trailer, has a status.
func readStatus(h http.Header) (status, bool) {
	message, err := url.PathUnescape(h.Get(messageHeader))
	if err != nil {
		message = h.Get(messageHeader)
	}
	s := status{code: h.Get(statusHeader), message: message}
	return s, s.code != ""
}

// write ends the answer with the status, whether or not its headers are sent.
func (s status) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set(http.TrailerPrefix+statusHeader, s.code)
	h.Set(http.TrailerPrefix+messageHeader, url.PathEscape(s.message))
}

// repeatAfter is how often a failure that lasts is logged.
const repeatAfter = 10 * time.Second

// report logs the transitions of streams. Envoy opens a stream that fails again and
// again, so the same failure is logged once and every 10 s.
type report struct {
	log hclog.Logger

	mu     sync.Mutex
	last   string
	logged time.Time
}

func (r *report) established(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = ""
	r.log.Info("xDS stream established", logkey.Address, address)
}

func (r *report) failed(level hclog.Level, address, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if reason == r.last && now.Sub(r.logged) < repeatAfter {
		level = hclog.Debug
	} else {
		r.last, r.logged = reason, now
	}
	r.log.Log(level, "xDS stream ended", logkey.Address, address, logkey.Reason, reason)
}

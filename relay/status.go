package relay

import (
	"net/http"
	"net/url"
)

// Codes of gRPC, as their header has them.
const (
	invalidArgument  = "3"
	notFound         = "5"
	permissionDenied = "7"
	exhausted        = "8"
	unimplemented    = "12"
	unavailable      = "14"
	unauthenticated  = "16"
)

// deltaMethod is the method of the xDS protocol that Consul serves, and tokenHeader
// carries the proxy's token.
const (
	deltaMethod = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
	tokenHeader = "x-consul-token"
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

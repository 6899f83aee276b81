package relay

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"google.golang.org/protobuf/encoding/protowire"
)

// queryMethod is the method by which Consul servers answer DNS queries. They read the task's
// place in Consul Enterprise from two headers beside the token.
const (
	queryMethod     = "/hashicorp.consul.dns.DNSService/Query"
	namespaceHeader = "x-consul-namespace"
	partitionHeader = "x-consul-partition"
)

// Numbers of the fields of QueryRequest and QueryResponse, and the values of a protocol.
const (
	fieldQueryMessage, fieldQueryProtocol = 1, 2
	queryOverTCP, queryOverUDP            = 1, 2
)

// mostResponse bounds what is read of a call's answer: a DNS message, with what is around it.
const mostResponse = mostSize + 64

// exchange sends a query to one server as it came, and returns its reply.
func (d *DNS) exchange(ctx context.Context, address string, q query) (reply, error) {
	token, err := d.config.Token()
	if err != nil {
		return reply{}, fmt.Errorf("read the task's token: %w%s", err, advice(err))
	}
	message, fresh, err := d.call(ctx, address, token, q)
	if err != nil && !fresh && ctx.Err() == nil && !errors.As(err, new(statusError)) {
		// The server has closed the connection, as when it restarts.
		message, _, err = d.call(ctx, address, token, q)
	}
	if refused, is := errors.AsType[statusError](err); is && (refusal(refused.code) || refused.code == notFound) {
		d.config.Servers.GRPCServed(address)
		return reply{refusal: err}, nil
	}
	if err != nil {
		return reply{}, err
	}
	code, err := q.check(message)
	if err != nil {
		return reply{}, fmt.Errorf("ask Consul server %s: %w", address, err)
	}
	d.config.Servers.GRPCServed(address)
	return reply{message: message, code: code}, nil
}

// call makes one call, and reports whether it was the first of its connection.
func (d *DNS) call(ctx context.Context, address, token string, q query) (message []byte, fresh bool, err error) {
	conn, fresh, err := d.links.get(ctx, address)
	if err != nil {
		return nil, true, err
	}
	resp, err := conn.RoundTrip(d.request(ctx, address, token, q))
	if err == nil {
		defer resp.Body.Close()
		message, err = readCall(resp)
	}
	if err != nil {
		return nil, fresh, fmt.Errorf("ask Consul server %s: %w", address, err)
	}
	return message, fresh, nil
}

// request returns the call for a query.
func (d *DNS) request(ctx context.Context, address, token string, q query) *http.Request {
	body := queryRequest(q)
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Scheme: "http", Host: address, Path: queryMethod},
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	r.Header.Set("Grpc-Timeout", fmt.Sprintf("%dm", askLimit.Milliseconds()))
	for name, value := range map[string]string{
		tokenHeader: token, namespaceHeader: d.config.Namespace, partitionHeader: d.config.Partition,
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r.WithContext(ctx)
}

// statusError is a status of gRPC other than OK.
type statusError struct{ status }

func (e statusError) Error() string { return fmt.Sprintf("status %s: %s", e.code, e.message) }

// readCall returns the DNS message of a call's answer.
func readCall(resp *http.Response) ([]byte, error) {
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %s: consulServers.grpc.port is not that of gRPC", resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostResponse+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > mostResponse:
		return nil, fmt.Errorf("the answer has more than %d bytes", mostResponse)
	}
	got, ok := readStatus(resp.Header)
	if !ok {
		got, ok = readStatus(resp.Trailer)
	}
	switch {
	case !ok:
		return nil, errors.New("the answer ended without a status")
	case got.code != "0":
		return nil, statusError{got}
	}
	return readQueryResponse(body)
}

// queryRequest returns a QueryRequest, with gRPC's prefix.
func queryRequest(q query) []byte {
	protocol := uint64(queryOverTCP)
	if q.udp {
		protocol = queryOverUDP
	}
	message := protowire.AppendTag(make([]byte, messagePrefix), fieldQueryMessage, protowire.BytesType)
	message = protowire.AppendBytes(message, q.message)
	message = protowire.AppendTag(message, fieldQueryProtocol, protowire.VarintType)
	message = protowire.AppendVarint(message, protocol)
	binary.BigEndian.PutUint32(message[1:], uint32(len(message)-messagePrefix))
	return message
}

// readQueryResponse returns the DNS message of a QueryResponse that has gRPC's prefix.
func readQueryResponse(body []byte) (message []byte, err error) {
	m := messages{limit: mostResponse, take: func(response []byte) error {
		return eachField(response, func(number protowire.Number, value []byte) error {
			if number == fieldQueryMessage {
				message = value
			}
			return nil
		})
	}}
	if err := m.write(body); err != nil {
		return nil, fmt.Errorf("the answer is malformed: %w", err)
	}
	if len(message) == 0 {
		return nil, errors.New("the answer has no DNS message")
	}
	return message, nil
}

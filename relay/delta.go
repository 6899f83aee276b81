package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// messagePrefix is what gRPC puts before each message: a byte for the compression, and the
// length.
const messagePrefix = 5

var errCompressed = errors.New("messages are compressed")

// messages cuts a gRPC stream, which passes in parts, into its messages.
type messages struct {
	// limit is the length of the longest message.
	limit  int
	take   func(message []byte) error
	prefix []byte
	body   []byte
	length int
}

// write takes the next part. After an error the rest of the stream cannot be read.
func (m *messages) write(part []byte) error {
	for len(part) > 0 {
		if missing := messagePrefix - len(m.prefix); missing > 0 {
			n := min(missing, len(part))
			m.prefix = append(m.prefix, part[:n]...)
			part = part[n:]
			if n < missing {
				return nil
			}
			if err := m.begin(); err != nil {
				return err
			}
		}
		n := min(m.length-len(m.body), len(part))
		m.body = append(m.body, part[:n]...)
		part = part[n:]
		if len(m.body) == m.length {
			body := m.body
			m.prefix, m.body = m.prefix[:0], nil
			if err := m.take(body); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin reads the prefix.
func (m *messages) begin() error {
	length := binary.BigEndian.Uint32(m.prefix[1:])
	switch {
	case m.prefix[0] != 0:
		return errCompressed
	case int64(length) > int64(m.limit):
		return fmt.Errorf("a message has %d bytes, more than %d", length, m.limit)
	}
	m.length = int(length)
	m.body = make([]byte, 0, m.length)
	return nil
}

// Numbers of the fields that are read and written, by message.
const (
	// DeltaDiscoveryResponse
	fieldResponseResources, fieldResponseType = 2, 4
	fieldResponseNonce, fieldResponseRemoved  = 5, 6
	// Resource
	fieldResourceVersion, fieldResourceName = 1, 3
	// DeltaDiscoveryRequest
	fieldRequestType, fieldRequestSubscribe, fieldRequestUnsubscribe = 2, 3, 4
	fieldRequestVersions, fieldRequestError                          = 5, 7
	// an entry of a map
	fieldMapKey, fieldMapValue = 1, 2
	// google.rpc.Status
	fieldErrorMessage = 2
)

// resource is a resource as a server sent it.
type resource struct {
	name, version string
	// message is the Resource, with name and version.
	message []byte
}

// discoveryResponse is a DeltaDiscoveryResponse.
type discoveryResponse struct {
	kind      string
	resources []resource
	removed   []string
}

// discoveryRequest is a DeltaDiscoveryRequest.
type discoveryRequest struct {
	kind                   string
	subscribe, unsubscribe []string
	// versions are those of the resources that Envoy has when it opens a stream.
	versions map[string]string
	// rejected is why Envoy does not take the last response.
	rejected string
}

// parseResponse returns copies of what it keeps of the message.
func parseResponse(message []byte) (r discoveryResponse, err error) {
	err = eachField(message, func(number protowire.Number, value []byte) error {
		switch number {
		case fieldResponseResources:
			one := resource{message: slices.Clone(value)}
			r.resources = append(r.resources, one)
			return r.resources[len(r.resources)-1].read()
		case fieldResponseType:
			r.kind = string(value)
		case fieldResponseRemoved:
			r.removed = append(r.removed, string(value))
		}
		return nil
	})
	return r, err
}

// read sets name and version.
func (r *resource) read() error {
	return eachField(r.message, func(number protowire.Number, value []byte) error {
		switch number {
		case fieldResourceName:
			r.name = string(value)
		case fieldResourceVersion:
			r.version = string(value)
		}
		return nil
	})
}

// parseRequest returns copies of what it keeps of the message.
func parseRequest(message []byte) (q discoveryRequest, err error) {
	err = eachField(message, func(number protowire.Number, value []byte) error {
		switch number {
		case fieldRequestType:
			q.kind = string(value)
		case fieldRequestSubscribe:
			q.subscribe = append(q.subscribe, string(value))
		case fieldRequestUnsubscribe:
			q.unsubscribe = append(q.unsubscribe, string(value))
		case fieldRequestVersions:
			return q.addVersion(value)
		case fieldRequestError:
			q.rejected = "no reason given"
			return eachField(value, func(number protowire.Number, value []byte) error {
				if number == fieldErrorMessage {
					q.rejected = string(value)
				}
				return nil
			})
		}
		return nil
	})
	return q, err
}

// addVersion reads an entry of the map of versions.
func (q *discoveryRequest) addVersion(entry []byte) error {
	var name, version string
	err := eachField(entry, func(number protowire.Number, value []byte) error {
		switch number {
		case fieldMapKey:
			name = string(value)
		case fieldMapValue:
			version = string(value)
		}
		return nil
	})
	if q.versions == nil {
		q.versions = map[string]string{}
	}
	q.versions[name] = version
	return err
}

// writeResponse writes a DeltaDiscoveryResponse, with gRPC's prefix. It makes no copy of the
// resources.
func writeResponse(w io.Writer, r discoveryResponse, nonce string) error {
	tail := appendField(nil, fieldResponseType, r.kind)
	tail = appendField(tail, fieldResponseNonce, nonce)
	for _, name := range r.removed {
		tail = appendField(tail, fieldResponseRemoved, name)
	}
	length := len(tail)
	for _, one := range r.resources {
		length += protowire.SizeTag(fieldResponseResources) + protowire.SizeBytes(len(one.message))
	}
	parts := [][]byte{binary.BigEndian.AppendUint32(make([]byte, 1, messagePrefix), uint32(length))}
	for _, one := range r.resources {
		head := protowire.AppendTag(nil, fieldResponseResources, protowire.BytesType)
		parts = append(parts, protowire.AppendVarint(head, uint64(len(one.message))), one.message)
	}
	for _, part := range append(parts, tail) {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func appendField(message []byte, field protowire.Number, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(message, field, protowire.BytesType), value)
}

// eachField calls do for each field of the message that is a string, bytes or a message.
func eachField(message []byte, do func(protowire.Number, []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return protowire.ParseError(n)
			}
			message = message[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := do(number, value); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}

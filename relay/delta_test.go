package relay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// one makes a resource with the name, the version and a body.
func one(name, version, body string) resource {
	message := appendField(nil, fieldResourceVersion, version)
	message = appendField(message, 2, body)
	return resource{name: name, version: version, message: appendField(message, fieldResourceName, name)}
}

// asking makes the message of a request, as Envoy does.
func asking(q discoveryRequest) []byte {
	message := appendField(nil, 1, "node")
	message = appendField(message, fieldRequestType, q.kind)
	for _, name := range q.subscribe {
		message = appendField(message, fieldRequestSubscribe, name)
	}
	for _, name := range q.unsubscribe {
		message = appendField(message, fieldRequestUnsubscribe, name)
	}
	for name, version := range q.versions {
		entry := appendField(appendField(nil, fieldMapKey, name), fieldMapValue, version)
		message = appendField(message, fieldRequestVersions, string(entry))
	}
	if q.rejected != "" {
		code := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 13)
		message = appendField(message, fieldRequestError, string(appendField(code, fieldErrorMessage, q.rejected)))
	}
	return message
}

// framed adds gRPC's prefix.
func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// sent returns what a server sends.
func sent(t testing.TB, r discoveryResponse) []byte {
	t.Helper()
	var stream bytes.Buffer
	if err := writeResponse(&stream, r, "1"); err != nil {
		t.Fatal(err)
	}
	return stream.Bytes()
}

// cut passes a stream in parts of that size, and returns its messages.
func cut(stream []byte, size, limit int) (got [][]byte, err error) {
	m := messages{limit: limit, take: func(message []byte) error {
		got = append(got, message)
		return nil
	}}
	for part := range slices.Chunk(stream, size) {
		if err := m.write(part); err != nil {
			return got, err
		}
	}
	return got, nil
}

func TestMessagesSpanParts(t *testing.T) {
	t.Parallel()
	want := [][]byte{[]byte("first"), {}, []byte("third")}
	var stream []byte
	for _, message := range want {
		stream = append(stream, framed(message)...)
	}
	for size := 1; size <= len(stream); size++ {
		if got, err := cut(stream, size, 5); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parts of %d: %q, %v; want %q", size, got, err, want)
		}
	}
}

func TestUnreadableMessages(t *testing.T) {
	t.Parallel()
	if _, err := cut([]byte("\x01\x00\x00\x00\x00"), 5, 5); !errors.Is(err, errCompressed) {
		t.Errorf("compressed: %v", err)
	}
	_, err := cut([]byte("\x00\xff\xff\xff\xff"), 5, 5)
	if err == nil || err.Error() != "a message has 4294967295 bytes, more than 5" {
		t.Errorf("long: %v", err)
	}
	broken := errors.New("broken")
	m := messages{limit: 5, take: func([]byte) error { return broken }}
	if err := m.write(framed([]byte("a"))); !errors.Is(err, broken) {
		t.Errorf("refused: %v", err)
	}
}

func TestResponseIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	want := discoveryResponse{
		kind: ldsType,
		resources: []resource{
			one("public_listener:10.0.0.1:20000", "1", "body"),
			one("api:127.0.0.1:1234", "2", strings.Repeat("x", 300)),
		},
		removed: []string{"old:127.0.0.1:1"},
	}
	got, err := cut(sent(t, want), 1, 1000)
	if err != nil || len(got) != 1 {
		t.Fatalf("%d messages, %v", len(got), err)
	}
	r, err := parseResponse(got[0])
	if err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v, %v; want %+v", r, err, want)
	}
	if _, err := parseResponse(got[0][:len(got[0])-1]); err == nil {
		t.Error("a part of a response is taken for all of it")
	}
}

func TestRequestIsRead(t *testing.T) {
	t.Parallel()
	want := discoveryRequest{
		kind: ldsType, subscribe: []string{"*", "b"}, unsubscribe: []string{"c"},
		versions: map[string]string{"d": "1", "e": "2"}, rejected: "no such filter",
	}
	if got, err := parseRequest(asking(want)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

// FuzzStream: whatever passes, the parts that it comes in make no difference, and what is read
// can be written again.
func FuzzStream(f *testing.F) {
	f.Add(sent(f, discoveryResponse{
		kind: ldsType, resources: []resource{one("a", "1", "body")}, removed: []string{"b"},
	}), 3)
	f.Add(append(sent(f, discoveryResponse{}), sent(f, discoveryResponse{kind: "x"})...), 7)
	f.Add(framed(asking(discoveryRequest{
		kind: ldsType, subscribe: []string{"*"}, versions: map[string]string{"a": "1"}, rejected: "no",
	})), 1)
	f.Add([]byte("\x01\x00\x00\x00\x02ab"), 2)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		const limit = 1 << 16
		uncut, uncutErr := cut(stream, max(1, len(stream)), limit)
		parts, partsErr := cut(stream, max(1, size), limit)
		if !reflect.DeepEqual(uncut, parts) {
			t.Errorf("%q in parts, %q uncut", parts, uncut)
		}
		if (uncutErr == nil) != (partsErr == nil) {
			t.Errorf("%v in parts, %v uncut", partsErr, uncutErr)
		}
		for _, message := range uncut {
			_, _ = parseRequest(message)
			r, err := parseResponse(message)
			if err != nil {
				continue
			}
			again, err := cut(sent(t, r), 1<<20, 1<<20)
			if err != nil || len(again) != 1 {
				t.Fatalf("%d messages, %v", len(again), err)
			}
			if same, err := parseResponse(again[0]); err != nil || !reflect.DeepEqual(same, r) {
				t.Errorf("got %+v, %v; want %+v", same, err, r)
			}
		}
	})
}

package consulutil

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ListMeta is what an answer has beside its list.
type ListMeta struct {
	// Index changes whenever anything of the list's kind does.
	Index uint64
	// Date is when the server answered, by its own clock, to the second; zero when
	// the answer has no date.
	Date time.Time
}

// Stream returns a context for one request whose answer is a list: each gets its
// elements as they arrive, and the API client an empty list. The client alone
// would hold the whole answer in memory, twice, and lists of tokens and services
// grow with the number of tasks. An element may have more fields than T. An error
// of each ends the request with it. meta is set before each is called.
func Stream[T any](ctx context.Context, meta *ListMeta, each func(T) error) context.Context {
	return StreamOf(ctx, meta, "", each)
}

// StreamOf streams as Stream does, for an answer that is an object: the list is its field of that
// name, and the API client gets nothing of the other fields either.
func StreamOf[T any](ctx context.Context, meta *ListMeta, field string, each func(T) error) context.Context {
	return context.WithValue(ctx, sinkKey{}, sink(func(r *http.Response) error {
		// Both are zero when the answer has none.
		meta.Date, _ = http.ParseTime(r.Header.Get("Date"))
		meta.Index, _ = strconv.ParseUint(r.Header.Get("X-Consul-Index"), 10, 64)
		d := json.NewDecoder(r.Body)
		if field == "" {
			return decodeEach(d, each)
		}
		return decodeField(d, field, each)
	}))
}

// decodeField reads a JSON object with a list in a field, or null.
func decodeField[T any](d *json.Decoder, field string, each func(T) error) error {
	return decodeInside(d, '{', "an object", func() error {
		name, err := d.Token()
		switch {
		case err != nil:
			return err
		case name == field:
			return decodeEach(d, each)
		}
		var other json.RawMessage
		return d.Decode(&other)
	})
}

// decodeEach reads a JSON list, or null.
func decodeEach[T any](d *json.Decoder, each func(T) error) error {
	return decodeInside(d, '[', "a list", func() error {
		var element T
		if err := d.Decode(&element); err != nil {
			return err
		}
		return each(element)
	})
}

// decodeInside reads what begins with a delimiter, or null; next reads one part of it.
func decodeInside(d *json.Decoder, begin json.Delim, what string, next func() error) error {
	start, err := d.Token()
	switch {
	case err != nil:
		return err
	case start == nil:
		return nil
	case start != begin:
		return fmt.Errorf("want %s, got %v", what, start)
	}
	for d.More() {
		if err := next(); err != nil {
			return err
		}
	}
	_, err = d.Token() // an answer that was cut off has no end
	return err
}

// sink reads an answer.
type sink func(*http.Response) error

type sinkKey struct{}

// streaming hands the body of a good answer to the request's sink.
type streaming struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s streaming) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(r)
	read, ok := r.Context().Value(sinkKey{}).(sink)
	if err != nil || !ok || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	if err := read(resp); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	resp.Body = io.NopCloser(strings.NewReader("null"))
	return resp, nil
}

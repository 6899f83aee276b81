package consulutil

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
)

type named struct{ Name string }

// stream reads a list from a server that answers body, and returns the names.
func stream(t *testing.T, status int, body string, stop error) (names []string, meta ListMeta, err error) {
	t.Helper()
	return streamOf(t, "", status, body, stop)
}

func streamOf(
	t *testing.T, field string, status int, body string, stop error,
) (names []string, meta ListMeta, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Consul-Index", "42")
		w.Header().Set("Date", "Mon, 02 Mar 2026 12:00:00 GMT")
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	c := newClient(t, Options{Address: server.URL})
	ctx := StreamOf(t.Context(), &meta, field, func(n named) error {
		names = append(names, n.Name)
		return stop
	})
	entries, _, err := c.ACL().TokenList(new(api.QueryOptions).WithContext(ctx))
	if len(entries) != 0 {
		t.Errorf("the client got %d elements", len(entries))
	}
	return names, meta, err
}

func TestStream(t *testing.T) {
	t.Parallel()
	names, meta, err := stream(t, 200, `[{"Name":"a","More":{"x":[1]}},{"Name":"b"}]`, nil)
	want := ListMeta{Index: 42, Date: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
	if err != nil || !slices.Equal(names, []string{"a", "b"}) || meta.Index != want.Index ||
		!meta.Date.Equal(want.Date) {
		t.Errorf("names %v, meta %+v, %v", names, meta, err)
	}
	for _, empty := range []string{"[]", "null", " [ ] \n"} {
		if names, _, err := stream(t, 200, empty, nil); err != nil || names != nil {
			t.Errorf("%s: %v, %v", empty, names, err)
		}
	}
}

// An answer that is cut off is an error, not a shorter list.
func TestStreamOfABrokenAnswer(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "[", `[{"Name":"a"}`, `[{"Name":"a"},`,
		`{"Name":"a"}`, `[{"Name":"a"}}`, `[1]`, `"a"`} {
		if names, _, err := stream(t, 200, body, nil); err == nil {
			t.Errorf("%s: names %v and no error", body, names)
		}
	}
}

func TestStreamOf(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{"Node":{"Services":[{"Name":"x"}]},"Services":[{"Name":"a"},{"Name":"b"}],"More":1}`: {"a", "b"},
		`{"Services":null}`: nil, `{"Services":[]}`: nil, `{"Node":null}`: nil, "null": nil, "{}": nil,
	} {
		names, meta, err := streamOf(t, "Services", 200, body, nil)
		if err != nil || !slices.Equal(names, want) || meta.Index != 42 {
			t.Errorf("%s: names %v, meta %+v, %v", body, names, meta, err)
		}
	}
	for _, body := range []string{"", "{", `{"Services"`, `{"Services":[{"Name":"a"}`,
		`{"Services":[{"Name":"a"}]`, `{"Services":{}}`, `{"Node":`, `[{"Name":"a"}]`, `"a"`} {
		if names, _, err := streamOf(t, "Services", 200, body, nil); err == nil {
			t.Errorf("%s: names %v and no error", body, names)
		}
	}
}

func TestStreamEndsWithTheReadersError(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	names, _, err := stream(t, 200, `[{"Name":"a"},{"Name":"b"}]`, enough)
	if !errors.Is(err, enough) || len(names) != 1 {
		t.Errorf("names %v, %v", names, err)
	}
}

// A refusal goes to the client as ever.
func TestStreamPassesRefusalsOn(t *testing.T) {
	t.Parallel()
	names, _, err := stream(t, 403, "Permission denied", nil)
	if Status(err) != 403 || !strings.Contains(err.Error(), "Permission denied") || names != nil {
		t.Errorf("names %v, %v", names, err)
	}
}

// Requests of other contexts are not touched.
func TestStreamIsOneRequests(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(`[{"AccessorID":"a"}]`)) }))
	defer server.Close()
	entries, _, err := newClient(t,
		Options{Address: server.URL}).ACL().TokenList(new(api.QueryOptions).WithContext(context.Background()))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d elements, %v", len(entries), err)
	}
}

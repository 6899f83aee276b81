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

	"github.com/meshtask/consul-ecs/internal/testkit"
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
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "names", strings.Join(names, " "), "a b")
	testkit.Equal(t, "index", meta.Index, want.Index)
	testkit.Equal(t, "date", meta.Date.UTC(), want.Date)
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
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%s: names %v, %v", body, names, err)
		}
		testkit.Equal(t, body+": index", meta.Index, 42)
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
	testkit.Equal(t, "status", Status(err), 403)
	testkit.ErrorContains(t, err, "Permission denied")
	testkit.Equal(t, "names", len(names), 0)
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

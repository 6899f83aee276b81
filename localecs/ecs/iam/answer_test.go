package iam

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status       int
		v            any
		code         int
		body, header string
	}{
		"no newline":           {200, map[string]string{"a": "b"}, 200, `{"a":"b"}`, "application/json"},
		"a newline in it":      {404, "x\n", 404, `"x\n"`, "application/json"},
		"escaped as in Go":     {200, "<&>", 200, `"\u003c\u0026\u003e"`, "application/json"},
		"what JSON cannot say": {200, make(chan int), 500, "json: unsupported type: chan int\n", "text/plain; charset=utf-8"},
	} {
		w := httptest.NewRecorder()
		JSON(w, c.status, c.v)
		if w.Code != c.code || w.Body.String() != c.body || w.Header().Get("Content-Type") != c.header {
			t.Errorf("%s: %d %q, %q; want %d %q, %q", name, w.Code, w.Body, w.Header().Get("Content-Type"), c.code, c.body, c.header)
		}
	}
}

// gone is a client that has hung up.
type gone struct {
	http.ResponseWriter
	statuses []int
}

func (g *gone) WriteHeader(status int)    { g.statuses = append(g.statuses, status) }
func (g *gone) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestClientThatIsGoneGetsOneAnswer(t *testing.T) {
	t.Parallel()
	g := &gone{ResponseWriter: httptest.NewRecorder()}
	JSON(g, http.StatusOK, strings.Repeat("x", 1000))
	if len(g.statuses) != 1 || g.statuses[0] != http.StatusOK {
		t.Errorf("statuses %v, want one 200", g.statuses)
	}
}

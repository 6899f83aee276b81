package iam

import (
	"net/http/httptest"
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
		"no newline":       {200, map[string]string{"a": "b"}, 200, `{"a":"b"}`, "application/json"},
		"a newline in it":  {404, "x\n", 404, `"x\n"`, "application/json"},
		"escaped as in Go": {200, "<&>", 200, `"\u003c\u0026\u003e"`, "application/json"},
	} {
		w := httptest.NewRecorder()
		JSON(w, c.status, c.v)
		if w.Code != c.code || w.Body.String() != c.body || w.Header().Get("Content-Type") != c.header {
			t.Errorf("%s: %d %q, %q; want %d %q, %q", name, w.Code, w.Body, w.Header().Get("Content-Type"), c.code,
				c.body, c.header)
		}
	}
}

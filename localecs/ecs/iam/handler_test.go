package iam

import (
	"github.com/meshtask/consul-ecs/internal/testkit"
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
		testkit.Equal(t, name+": Code", w.Code, c.code)
		testkit.Equal(t, name+": Body.String()", w.Body.String(), c.body)
		testkit.Equal(t, name+": Header().Get(\"Content-Type\")", w.Header().Get("Content-Type"), c.header)
	}
}

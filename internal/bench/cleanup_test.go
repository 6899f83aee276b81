package main

import (
	"slices"
	"testing"
	"time"
)

func TestWritesOf(t *testing.T) {
	t.Parallel()
	got := writesOf([]exchange{
		{method: "GET", path: "/v1/acl/tokens"}, {method: "PUT", path: "/v1/session/renew/x"}, {method: "PUT", path: "/v1/kv/lock"},
		{method: "DELETE", path: "/v1/acl/token/x"}, {method: "PUT", path: "/v1/catalog/deregister"},
	})
	var paths []string
	for _, e := range got {
		paths = append(paths, e.path)
	}
	if want := []string{"/v1/acl/token/x", "/v1/catalog/deregister"}; !slices.Equal(paths, want) {
		t.Errorf("writes %v, want %v", paths, want)
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	got := span([]exchange{{start: at(5), end: at(9)}, {start: at(3), end: at(4)}, {start: at(6), end: at(7)}})
	if got != 6*time.Second || span(nil) != 0 {
		t.Errorf("span %s", got)
	}
}

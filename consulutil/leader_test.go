package consulutil

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLeaderOfOneServer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		want    string // in the error; none when empty
	}{
		"a leader":   {answer(200, `"10.0.0.1:8300"`), ""},
		"none":       {answer(200, `""`), "server 127.0.0.2: no cluster leader"},
		"a refusal":  {answer(403, "rate limit"), ""},
		"a fault":    {answer(500, "No cluster leader"), "server 127.0.0.2: status 500"},
		"no JSON":    {answer(200, "<html>"), "server 127.0.0.2: invalid character"},
		"no answer":  {freeze, "no answer within 1.5s"},
		"no server":  {nil, "connection refused"},
		"cut off":    {breakOff, "EOF"},
		"other JSON": {answer(200, `{"a":1}`), "cannot unmarshal object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, false, answer(200, `"10.0.0.1:8300"`), tt.handler)
			s := f.inOrder(t, ServersOptions{})
			before := slices.Clone(s.set.addresses)
			start := time.Now()
			err := s.HasLeader(t.Context(), "127.0.0.2:8503")
			if tt.want == "" && err != nil {
				t.Errorf("got %v", err)
			}
			if tt.want != "" && !strings.Contains(errorText(err), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if took := time.Since(start); took > attemptLimit+time.Second {
				t.Errorf("took %s", took)
			}
			if !slices.Equal(s.set.addresses, before) {
				t.Errorf("order %v, want %v", s.set.addresses, before)
			}
			if asked := f.requests(); slices.Contains(asked, "1 GET /v1/status/leader") {
				t.Error("another server was asked")
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestLeaderIsAskedOverOneConnection(t *testing.T) {
	t.Parallel()
	f := newFleet(t, false, answer(200, `"10.0.0.1:8300"`))
	s := f.inOrder(t, ServersOptions{})
	for range 5 {
		if err := s.HasLeader(t.Context(), "127.0.0.1:8503"); err != nil {
			t.Fatal(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns != 1 {
		t.Errorf("%d connections, want 1", f.conns)
	}
}

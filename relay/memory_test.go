package relay

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// TestMemoryIsWhatEnvoyHas: also when a new Envoy begins with less than the last one had.
func TestMemoryIsWhatEnvoyHas(t *testing.T) {
	t.Parallel()
	m, _ := newLog()
	names := func(kind string) (all []string) {
		r, _ := m.answer(discoveryRequest{kind: kind}, true)
		for _, one := range r.resources {
			all = append(all, one.name+one.version)
		}
		return all
	}
	for i, c := range []struct {
		response discoveryResponse
		initial  map[string]string
		want     []string
	}{
		{
			discoveryResponse{kind: cdsType, resources: []resource{one("a", "1", ""), one("b", "1", "")}},
			map[string]string{}, []string{"a1", "b1"},
		},
		{discoveryResponse{kind: cdsType, resources: []resource{one("b", "2", "longer")}}, nil, []string{"a1", "b2"}},
		{
			discoveryResponse{kind: cdsType, resources: []resource{one("c", "1", "")}, removed: []string{"a"}},
			nil, []string{"b2", "c1"},
		},
		{discoveryResponse{kind: cdsType}, map[string]string{"c": "1"}, []string{"c1"}},
		{
			discoveryResponse{kind: cdsType, resources: []resource{one("d", "1", "")}}, map[string]string{},
			[]string{"d1"},
		},
	} {
		if err := m.update(c.response, c.initial); err != nil {
			t.Fatal(err)
		}
		if got := names(cdsType); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
	m.unsubscribed(discoveryRequest{kind: cdsType, unsubscribe: []string{"d"}})
	if m.size != 0 {
		t.Errorf("%d bytes are counted, want none", m.size)
	}
}

func TestAnswerIsAServers(t *testing.T) {
	t.Parallel()
	m, _ := newLog()
	a, b := one("a", "1", ""), one("b", "1", "")
	if err := m.update(discoveryResponse{kind: cdsType, resources: []resource{a, b}}, nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		request discoveryRequest
		first   bool
		want    discoveryResponse
		ok      bool
	}{
		"all": {discoveryRequest{}, true, discoveryResponse{resources: []resource{a, b}}, true},
		"all by name": {
			discoveryRequest{subscribe: []string{"*"}}, true,
			discoveryResponse{resources: []resource{a, b}}, true,
		},
		"an acknowledgement": {discoveryRequest{}, false, discoveryResponse{}, false},
		"one more": {
			discoveryRequest{subscribe: []string{"b"}}, false,
			discoveryResponse{resources: []resource{b}}, true,
		},
		"what Envoy has": {
			discoveryRequest{versions: map[string]string{"a": "1", "b": "0"}}, true,
			discoveryResponse{resources: []resource{b}}, true,
		},
		"nothing new": {
			discoveryRequest{versions: map[string]string{"a": "1", "b": "1", "c": "1"}}, true,
			discoveryResponse{}, false,
		},
		"an unknown one": {
			discoveryRequest{subscribe: []string{"c"}}, true,
			discoveryResponse{removed: []string{"c"}}, true,
		},
		"an unknown one of Envoy": {
			discoveryRequest{subscribe: []string{"c"}, versions: map[string]string{"c": "1"}}, true,
			discoveryResponse{}, false,
		},
	} {
		c.request.kind, c.want.kind = cdsType, cdsType
		got, ok := m.answer(c.request, c.first)
		if ok != c.ok {
			t.Errorf("%s: answered %v, want %v", name, ok, c.ok)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if r, ok := m.answer(discoveryRequest{kind: ldsType}, true); !ok || len(r.resources) > 0 {
		t.Errorf("all of none: %+v, %v; want an empty response", r, ok)
	}
}

func TestTooMuchIsNotRemembered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send []byte
		want string
	}{
		"large": {
			sent(t, discoveryResponse{kind: cdsType, resources: []resource{one("b", "1", strings.Repeat("x", 900))}}),
			"bytes, more than 1000",
		},
		"compressed": {[]byte("\x01\x00\x00\x00\x01a"), errCompressed.Error()},
		"no gRPC":    {framed([]byte("\x12")), "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, log := newLog()
			m.limit = 1000
			w := &peer{header: http.Header{}}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := newExchange(m, w).attempt(req)
			first := sent(t, discoveryResponse{
				kind: ldsType, resources: []resource{one("a", "1", strings.Repeat("x", 500))},
			})
			for _, part := range [][]byte{first, c.send, first} {
				if _, err := a.Write(part); err != nil {
					t.Fatal(err)
				}
			}
			if m.ready() {
				t.Error("it is remembered")
			}
			if n := strings.Count(log.String(), "[WARN]  Envoy's resources are not remembered"); n != 1 {
				t.Errorf("%d warnings, want 1; log %q", n, log)
			}
			if !strings.Contains(log.String(), c.want) {
				t.Errorf("log %q, want %q", log, c.want)
			}
			if want := len(first)*2 + len(c.send); w.answer.Len() != want {
				t.Errorf("Envoy got %d bytes, want %d", w.answer.Len(), want)
			}
		})
	}
}

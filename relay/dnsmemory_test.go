package relay

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

func TestDNSMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m, now := newDNSMemory(), time.Now()
	first := question{name: "first.service.consul."}
	m.put(first, []byte("kept"), now)
	for i := range 100 { // of the longest messages
		m.put(question{name: fmt.Sprint(i)}, make([]byte, mostSize), now)
		if _, ok := m.get(first, now); !ok {
			t.Fatalf("what is asked for again is forgotten after %d others", i)
		}
	}
	if m.size > mostRemembered {
		t.Errorf("%d bytes, more than %d", m.size, mostRemembered)
	}
	if _, ok := m.get(question{name: "0"}, now); ok {
		t.Error("what was used least recently is not forgotten")
	}
	if _, ok := m.get(question{name: "99"}, now); !ok {
		t.Error("what was used last is forgotten")
	}
	for i := range 10000 { // short ones count, too
		m.put(question{name: fmt.Sprint(i)}, nil, now)
	}
	if n := m.all.Len(); n > mostRemembered/entryCost {
		t.Errorf("%d replies, more than %d", n, mostRemembered/entryCost)
	}
	if m.size > mostRemembered {
		t.Errorf("%d bytes, more than %d", m.size, mostRemembered)
	}
}

func TestDNSMemoryHasTheLastReplyForADay(t *testing.T) {
	t.Parallel()
	m, now := newDNSMemory(), time.Now()
	q := question{name: "api.virtual.consul."}
	m.put(q, make([]byte, 100), now)
	m.put(q, []byte("second"), now)
	if got, ok := m.get(q, now.Add(rememberedFor-1)); !ok || !bytes.Equal(got, []byte("second")) {
		t.Errorf("%q, %v, want the second reply", got, ok)
	}
	if got, ok := m.get(q, now.Add(rememberedFor)); ok {
		t.Errorf("%q is given again after a day", got)
	}
	if want := len(q.name) + len("second") + entryCost; m.size != want {
		t.Errorf("%d bytes, want %d", m.size, want)
	}
}

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// at returns an exchange from one millisecond to another.
func at(from, to int) exchange {
	zero := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	return exchange{
		start: zero.Add(time.Duration(from) * time.Millisecond), end: zero.Add(time.Duration(to) * time.Millisecond),
	}
}

func TestBusy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exchanges []exchange
		want      time.Duration
	}{
		"none":                     {nil, 0},
		"one after the other":      {[]exchange{at(0, 5), at(7, 10)}, 8 * time.Millisecond},
		"one inside another":       {[]exchange{at(0, 10), at(2, 4), at(3, 5)}, 10 * time.Millisecond},
		"overlapping, not in turn": {[]exchange{at(5, 12), at(0, 8)}, 12 * time.Millisecond},
		"after one inside another": {[]exchange{at(0, 10), at(2, 4), at(6, 12)}, 12 * time.Millisecond},
	} {
		if got := busy(c.exchanges); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestRecorderPassesOnAndRecords(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, r.Method+" "+r.URL.String()+" "+string(body))
	}))
	defer behind.Close()
	var rec recorder
	front := httptest.NewServer(rec.proxy(strings.TrimPrefix(behind.URL, "http://")))
	defer front.Close()
	resp, err := http.Post(front.URL+"/v1/x?a=b", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if got := string(body); resp.StatusCode != http.StatusTeapot || got != "POST /v1/x?a=b hello" {
		t.Errorf("answer %d %q", resp.StatusCode, got)
	}
	front.Close() // waits for the handler, which records last
	seen := rec.take()
	if len(seen) != 1 || seen[0].end.Before(seen[0].start) {
		t.Fatalf("recorded %+v, want one exchange that ends after its start", seen)
	}
	if got, want := [...]string{
		seen[0].method, seen[0].path, seen[0].body,
	}, [...]string{"POST", "/v1/x", "hello"}; got != want {
		t.Errorf("recorded %q, want %q", got, want)
	}
	if again := rec.take(); len(again) != 0 {
		t.Errorf("recorded twice: %+v", again)
	}
}

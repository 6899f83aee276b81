package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/awsutil/tmds"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func answersFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadAnswers(t *testing.T) {
	t.Parallel()
	rounds := map[int64]*asked{}
	for _, text := range []string{"7 ours 1500000\n7 plain 500000\n8 ours 2000000\n", "7 ours 2500000\n"} {
		if err := readAnswers(answersFile(t, text), rounds); err != nil {
			t.Fatal(err)
		}
	}
	want := map[int64]*asked{7: {ours: sample{1.5, 2.5}, plain: sample{0.5}}, 8: {ours: sample{2}}}
	if diff := cmp.Diff(want, rounds, cmp.AllowUnexported(asked{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"error: connection refused\n", "7 nobody 1\n", "7 ours\n"} {
		if err := readAnswers(answersFile(t, text), rounds); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestOnlyWholeRoundsCount(t *testing.T) {
	t.Parallel()
	many := make(sample, 2*int(askTurn/askEvery))
	few := many[:len(many)/2]
	got := whole(map[int64]*asked{1: {few, many}, 2: {many, many}, 3: {many, few}}, 2)
	if len(got) != 1 || len(got[0].ours) != len(many) || len(got[0].plain) != len(many) {
		t.Errorf("%d rounds, want the one in which both tasks asked both", len(got))
	}
}

func TestLatencyRows(t *testing.T) {
	t.Parallel()
	var hundred sample
	for i := range 100 {
		hundred.add(float64(100 - i))
	}
	rows := latencyRows(10, []asked{{ours: hundred, plain: sample{1}}, {ours: sample{3}, plain: sample{2}}})
	want := []row{
		{"localecs, /task asked 40 times a second by 10 tasks: p50", milliseconds, "", "", sample{50, 3}, []reference{{"the same bytes, plain net/http", sample{1, 2}}}},
		{"localecs, /task asked 40 times a second by 10 tasks: p99", milliseconds, "", "2", sample{99, 3}, []reference{{"the same bytes, plain net/http", sample{1, 2}}}},
		{"localecs, /task asked 40 times a second by 10 tasks: max", milliseconds, "", "", sample{100, 3}, []reference{{"the same bytes, plain net/http", sample{1, 2}}}},
	}
	if diff := cmp.Diff(want, rows, cmp.AllowUnexported(row{}, reference{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The program that asks from inside of tasks, with its plain server, here on
// loopback.
func TestAskerTellsOfBoth(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ask, err := s.build(t.Context(), floorAsk)
	if err != nil {
		t.Fatal(err)
	}
	var asks atomic.Int64
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asks.Add(1)
		w.Write([]byte(r.URL.Path))
	}))
	t.Cleanup(metadata.Close)
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	peer := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: ports[0]}).String()
	env := []string{tmds.EnvVar + "=" + metadata.URL + "/v4/id"}
	if _, err := s.start(env, ask, "serve", peer); err != nil {
		t.Fatal(err)
	}
	c, err := s.start(env, ask, peer, "20ms", "5ms")
	if err != nil {
		t.Fatal(err)
	}
	// Between its turns with the metadata it asks the plain server.
	if _, err := s.until("metadata was asked thirty times", time.Millisecond, testkit.Patience, func() bool { return asks.Load() > 30 }); err != nil {
		t.Fatal(err)
	}
	if err := c.signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for l := range c.lines {
		text = append(text, l.text+"\n"...)
	}
	rounds := map[int64]*asked{}
	if err := readAnswers(answersFile(t, string(text)), rounds); err != nil {
		t.Fatal(err)
	}
	var ours, plain int
	for _, r := range rounds {
		ours, plain = ours+len(r.ours), plain+len(r.plain)
	}
	if ours < 20 || plain == 0 || len(rounds) < 2 {
		t.Errorf("%d answers of ours, %d of the plain server in %d rounds", ours, plain, len(rounds))
	}
	if err := c.wait(); err != nil {
		t.Error(err)
	}
}

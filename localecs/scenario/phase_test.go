package scenario

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

func TestPhaseIsJudgedByItsLimits(t *testing.T) {
	t.Parallel()
	n := func(i int) *int { return &i }
	for _, c := range []struct {
		limits           file.Limits
		answered, failed int
		table, problem   string
	}{
		{file.Limits{}, 0, 7, "-", ""},
		{file.Exactly(0), 100, 0, "0", ""},
		{file.Exactly(0), 99, 1, "0", "1 of 100 requests failed; 0 may. First: EOF"},
		{file.Exactly(0), 0, 0, "0", "no request was answered"},
		{file.Exactly(3), 97, 2, "3", "2 of 99 requests failed; 3 must"},
		{file.Limits{Max: n(5)}, 95, 5, "at most 5", ""},
		{file.Limits{Max: n(5)}, 94, 6, "at most 5", "6 of 100 requests failed; at most 5 may. First: EOF"},
		{file.Limits{Min: n(1)}, 100, 0, "at least 1", "0 of 100 requests failed; at least 1 must"},
		{file.Limits{Min: n(1)}, 50, 50, "at least 1", ""},
		{file.Limits{Min: n(1), Max: n(2)}, 9, 3, "1 to 2", "3 of 12 requests failed; 1 to 2 may. First: EOF"},
	} {
		p := Phase{Answered: c.answered, Failed: c.failed, First: "EOF", Limits: c.limits}
		if got := p.problem(); got != c.problem || c.limits.String() != c.table {
			t.Errorf("%d answered, %d failed, limits %s (want %s): %q, want %q", c.answered, c.failed, c.limits,
				c.table, got, c.problem)
		}
	}
}

func TestPhaseHasTheTotalsOfItsStream(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 3 {
			http.Error(w, "lost", http.StatusBadGateway)
		}
	}))
	defer server.Close()
	tr := newTraffic(server.URL, new(net.Dialer).DialContext, func(trafficRequest) {})
	tr.Start(t.Context(), 200)
	until(t, "10 answers", func() bool { answered, _, _ := totals(tr); return answered >= 10 })
	tr.Stop()
	p := tr.Phase("orderly", file.Exactly(0))
	testkit.Equal(t, "Name", p.Name, "orderly")
	testkit.Equal(t, "Answered", p.Answered, int(n.Load())-1)
	testkit.Equal(t, "Failed", p.Failed, 1)
	if p.Slowest <= 0 {
		t.Errorf("got %+v of %d requests", p, n.Load())
	}
	testkit.Equal(t, "First", p.First, "502 Bad Gateway: lost\n")
	if p.problem() == "" {
		t.Errorf("got %+v of %d requests", p, n.Load())
	}
}

package scenario

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// What a step says about what stays is exact: it is wrong when there is nothing,
// too.
func TestDeclaredLeftoversHaveToExist(t *testing.T) {
	t.Parallel()
	service, failed := leftover{Token: "1", Method: "services"}, leftover{Agent: "n", State: "failed"}
	leaves := file.Leaves{Tokens: map[string]string{"services": "no process logs out"}}
	dead := file.Leaves{Agent: "it was killed"}
	var reported []Event
	p := &progress{record: NewRecording(), out: func(e Event) { reported = append(reported, e) }}
	w := &cleanup{progress: p}
	const want = "no token of services is left of it, but its step declares one: no process logs out"
	err := w.reportRemaining("api-1", nil, leaves)
	if err == nil {
		t.Fatalf("got %v, reported %+v; want %s", err, reported, want)
	}
	testkit.Equal(t, "Error()", err.Error(), want)
	testkit.Equal(t, "len(reported)", len(reported), 0)
	const lives = "its agent has left, but its step declares that it fails: it was killed"
	if err := w.reportRemaining("api-1", nil, dead); err == nil || err.Error() != lives {
		t.Errorf("got %v; want %s", err, lives)
	}
	for found, leaves := range map[leftover]file.Leaves{service: leaves, failed: dead} {
		if err := w.reportRemaining("api-1", []leftover{found}, leaves); err != nil {
			t.Error(err)
		}
	}
	left := w.left
	slices.SortFunc(left, func(a, b ReportedLeftover) int { return strings.Compare(b.What, a.What) })
	if diff := cmp.Diff([]ReportedLeftover{
		{Task: "api-1", What: "token 1 of services", Reason: "no process logs out"},
		{Task: "api-1", What: "agent n, which is failed", Reason: "it was killed"},
	}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	slices.SortFunc(reported, func(a, b Event) int { return strings.Compare(b.Text, a.Text) })
	if len(reported) != 2 {
		t.Fatalf("reported %+v", reported)
	}
	testkit.Equal(t, "reported[0].Kind", reported[0].Kind, KindLeft)
	testkit.Equal(t, "reported[0].Task", reported[0].Task, "api-1")
	testkit.Equal(t, "reported[0].Text", reported[0].Text, "left: token 1 of services, as no process logs out")
}

func TestNothingLeftIsCheckedWhenRequested(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		checks   file.Checks
		hasAgent bool
		want     bool
	}{
		{file.Checks{CleanExits: true}, true, false},
		{file.Checks{AgentsLeft: true}, false, false},
		{file.Checks{AgentsLeft: true}, true, true},
		{file.Checks{NoTokensOf: []string{"m"}}, false, true},
		{file.Checks{NoServices: []string{"s"}}, false, true},
	} {
		if got := (ConsulQuery{Checks: c.checks}).wanted(c.hasAgent); got != c.want {
			t.Errorf("%+v, with an agent %t: %t", c.checks, c.hasAgent, got)
		}
	}
}

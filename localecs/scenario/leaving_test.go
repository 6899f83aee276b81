package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// What a step says about what stays is exact: it is wrong when there is nothing, too.
func TestDeclaredAgentHasToRemain(t *testing.T) {
	t.Parallel()
	failed := leftover{Agent: "n", State: "failed"}
	const dead = "it was killed"
	var reported []Event
	p := &progress{record: NewRecording(), out: func(e Event) { reported = append(reported, e) }}
	w := &cleanup{progress: p}
	const lives = "its agent has left, but its step declares that it fails: it was killed"
	if err := w.reportRemaining("api-1", nil, dead); err == nil || err.Error() != lives {
		t.Errorf("got %v; want %s", err, lives)
	}
	testkit.Equal(t, "len(reported)", len(reported), 0)
	if err := w.reportRemaining("api-1", []leftover{failed}, dead); err != nil {
		t.Error(err)
	}
	want := []ReportedLeftover{{Task: "api-1", What: "agent n, which is failed", Reason: "it was killed"}}
	if diff := cmp.Diff(want, w.left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if len(reported) != 1 {
		t.Fatalf("reported %+v", reported)
	}
	testkit.Equal(t, "reported[0].Kind", reported[0].Kind, KindLeft)
	testkit.Equal(t, "reported[0].Task", reported[0].Task, "api-1")
	testkit.Equal(t, "reported[0].Text", reported[0].Text, "left: agent n, which is failed, as it was killed")
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

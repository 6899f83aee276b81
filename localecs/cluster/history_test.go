package cluster

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// names are those of tasks.
func names(all []TaskStart) (list []string) {
	for _, b := range all {
		list = append(list, b.Name)
	}
	return list
}

func TestEndedTasksAreRetainedForAnHour(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	// Tasks that could not be started were over when they began.
	over := func(name string, ago time.Duration) TaskStart {
		return TaskStart{Name: name, At: now.Add(-ago), Err: errors.New("no address")}
	}
	got := kept([]TaskStart{over("old", time.Hour+1), over("fresh", time.Hour), over("now", 0)}, now)
	if want := []string{"fresh", "now"}; !slices.Equal(names(got), want) {
		t.Errorf("kept %q, want %q", names(got), want)
	}
	var many []TaskStart
	for i := range maxRemembered + 3 {
		many = append(many, over(fmt.Sprint(i), 0))
	}
	got = kept(many, now)
	if len(got) != maxRemembered || got[0].Name != "3" {
		t.Errorf("of too many %d are kept, the first is %s", len(got), got[0].Name)
	}
}

func TestHistoryIsInTheOrderOfTheStarts(t *testing.T) {
	t.Parallel()
	l := &launcher{}
	now := time.Now()
	for _, name := range []string{"b", "a", "c"} {
		l.note(TaskStart{Name: name, At: now})
	}
	first := l.history(now)
	l.note(TaskStart{Name: "d", At: now})
	if got := names(first); !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("%q", got)
	}
	if got := names(l.history(now.Add(2 * time.Hour))); len(got) != 0 {
		t.Errorf("after two hours: %q", got)
	}
}

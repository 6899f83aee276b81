package controlplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// AWS's answers about services are eventually consistent: a new service is not
// found at once, lists are old, and so are the numbers of tasks.
func TestAnswersAboutServicesAreDelayedByLag(t *testing.T) {
	t.Parallel()
	w := newLateFixture(t, begin,
		controlplane.Lag{New: 2 * time.Second, Counts: 5 * time.Second, Lists: 10 * time.Second})
	w.create(nil)
	look := func() string {
		described, err := w.DescribeServices(w.call(), shapes.DescribeServicesInput{Services: []string{"web"}})
		if err != nil {
			t.Fatal(err)
		}
		listed, err := w.ListServices(w.call(), shapes.ListServicesInput{})
		if err != nil {
			t.Fatal(err)
		}
		if len(described.Failures) > 0 {
			return fmt.Sprintf("%s, listed %d", described.Failures[0].Reason, len(listed.ServiceARNs))
		}
		s := described.Services[0]
		return fmt.Sprintf("%s %d+%d of %d, listed %d", s.Status, s.RunningCount, s.PendingCount, s.DesiredCount,
			len(listed.ServiceARNs))
	}
	expect := func(after time.Duration, want string) {
		t.Helper()
		w.now = begin.Add(after)
		if got := look(); got != want {
			t.Errorf("after %s: got %s, want %s", after, got, want)
		}
	}
	expect(0, "MISSING, listed 0")
	expect(2*time.Second, "ACTIVE 0+0 of 2, listed 0")
	expect(5*time.Second, "ACTIVE 2+0 of 2, listed 0")
	expect(10*time.Second, "ACTIVE 2+0 of 2, listed 1")
	// What changes it sees it as it is.
	w.now = begin.Add(20 * time.Second)
	if s := w.update(shapes.ServiceInput{DesiredCount: new(0)}); s.RunningCount != 2 {
		t.Errorf("%d run", s.RunningCount)
	}
	w.settle()
	if s := w.update(shapes.ServiceInput{DesiredCount: new(0)}); s.RunningCount != 0 {
		t.Errorf("the answer of a change: %d run", s.RunningCount)
	}
	expect(24*time.Second, "ACTIVE 2+0 of 0, listed 1")
	expect(25*time.Second, "ACTIVE 0+0 of 0, listed 1")
	w.now = begin.Add(30 * time.Second)
	if _, err := w.DeleteService(w.call(), shapes.DeleteServiceInput{Service: "web"}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	expect(39*time.Second, "INACTIVE 0+0 of 0, listed 1")
	expect(40*time.Second, "INACTIVE 0+0 of 0, listed 0")
}

package controlplane_test

import (
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
)

// A deployment may be blocked for one reason after the other: the last event is
// the one that counts.
func TestServiceReportsWhyItIsBlockedNow(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 1, func(s *controlplane.Service) { s.MinHealthy, s.Max = 50, 150 })
	w.steady()
	w.tasks[0].Protected = true
	w.update()
	before := len(w.events)
	w.want("protected", w.look(), "")
	w.tasks[0].Protected = false
	w.want("deadlocked", w.look(), "")
	w.want("still", w.look(), "")
	w.want("events", strings.Join(w.events[before:], "|"),
		"(service web) was unable to scale in due to task protection.|"+
			"(service web) was unable to stop or start tasks during a deployment because of the service deployment "+
			"configuration. Update the minimumHealthyPercent or maximumPercent value and try again.")
}

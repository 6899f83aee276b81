package controller

import (
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/controller/cleanup"
)

// TestBoundsOfThePage: the table "When" of docs/CONTROLLER.md.
func TestBoundsOfThePage(t *testing.T) {
	t.Parallel()
	o := Options{Interval: 10 * time.Second, Rate: 5}
	for _, tt := range []struct {
		calls            int
		pass             time.Duration
		pause            time.Duration
		known, forgotten time.Duration
	}{
		{1, time.Second, 36 * time.Second, 38 * time.Second, 6*time.Minute + 16*time.Second},
		{100, 18 * time.Second, 36 * time.Second, 72 * time.Second, 7*time.Minute + 24*time.Second},
	} {
		pause := o.Longest(tt.calls)
		known, forgotten := cleanup.DefaultLimits().Bound(pause, tt.pass)
		if pause != tt.pause || known != tt.known || forgotten != tt.forgotten {
			t.Errorf("%d calls: pause %s, gone after %s and %s", tt.calls, pause, known, forgotten)
		}
	}
}

package cluster

import (
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/chaos"
)

// Faults reach what a task finds, by its name.
func TestDisturbReachesTheTasksEndpoints(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	s := w.startTask(t, nil, helper("a", "run", "0s", "0")).await("a")
	path := s.base("a")
	for _, c := range []struct {
		fault chaos.Endpoint
		hit   bool
	}{
		{chaos.Endpoint{Name: chaos.Metadata, Status: 500}, true},
		{chaos.Endpoint{Name: chaos.Metadata, Task: "web", Status: 500}, true},
		{chaos.Endpoint{Name: chaos.Metadata, Task: "api", Status: 500}, false},
		{chaos.Endpoint{Name: chaos.Protection, Task: "web", Status: 500}, false},
	} {
		end := w.Disturb(c.fault, 1)
		if code, body := s.request("GET", path, ""); (code == 500) != c.hit {
			t.Errorf("%s: %d %s", c.fault, code, body)
		}
		end()
		if code, body := s.request("GET", path, ""); code != 200 {
			t.Errorf("after %s: %d %s", c.fault, code, body)
		}
	}
	end := w.Disturb(chaos.Endpoint{Name: chaos.STS, Status: 429}, 1)
	defer end()
	if code, body := s.request("GET", w.AWSEndpoint(), ""); code != 400 || !strings.Contains(body, "<Code>Throttling</Code>") {
		t.Errorf("STS: %d %s", code, body)
	}
}

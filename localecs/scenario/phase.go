package scenario

import (
	"fmt"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Phase is what became of the traffic between its start and its end.
type Phase struct {
	Name     string `json:"name"`
	Answered int    `json:"answered"`
	Failed   int    `json:"failed"`
	// Slowest is the longest request's time, a failed one's included.
	Slowest time.Duration `json:"slowest_ns"`
	// First is the text of the first loss, empty when there was none.
	First string `json:"first_failure,omitempty"`
	// Limits are what the phase was judged by.
	Limits file.Limits `json:"limits"`
}

// Problem says what is wrong with the phase, or nothing. A phase without a
// single answer proves nothing and is wrong as well.
func (p Phase) Problem() string {
	switch {
	case p.Limits.Max != nil && p.Failed > *p.Limits.Max:
		return fmt.Sprintf("%d of %d requests failed; %s may. First: %s", p.Failed, p.Answered+p.Failed, p.Limits, p.First)
	case p.Limits.Min != nil && p.Failed < *p.Limits.Min:
		return fmt.Sprintf("%d of %d requests failed; %s must", p.Failed, p.Answered+p.Failed, p.Limits)
	case p.Limits.Say() && p.Answered == 0:
		return "no request was answered"
	}
	return ""
}

// Phase is the traffic so far as a phase of that name.
func (s *TrafficStream) Phase(name string, l file.Limits) Phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Phase{Name: name, Answered: s.answered, Failed: s.failed, Slowest: s.slowest, First: s.first, Limits: l}
}

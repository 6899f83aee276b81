package file

import (
	"fmt"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// faultTargets returns what faults may be about. Containers are nil for a task whose definition was not read;
// that a service starts a task shows in its name only.
func (s *Scenario) faultTargets(containers map[string][]string) chaos.Targets {
	w := chaos.Targets{Containers: map[string][]string{}, CheckSignal: checkSignal}
	for name := range s.Tasks {
		w.Containers[name] = containers[name]
	}
	all := slices.Clone(s.Faults)
	for _, step := range s.Steps {
		all = append(all, step.Faults...)
	}
	for _, f := range all {
		for _, name := range f.Tasks() {
			if s.ServiceOf(name) != "" {
				w.Containers[name] = nil
			}
		}
	}
	return w
}

// checkSignal reports why text is not a signal.
func checkSignal(text string) error {
	_, err := runtime.ParseSignal(text)
	return err
}

// faultProblems looks at a step's faults, and at whether there are any to await.
func (s *Scenario) faultProblems(step Step, p *progress, add func(string, ...any)) {
	for _, err := range chaos.Problems(step.Faults, s.faultTargets(nil)) {
		add("%w", err)
	}
	p.faults = p.faults || len(step.Faults) > 0
	if step.Faults != nil && len(step.Faults) == 0 {
		add("want a list of faults")
	}
	if step.Await != nil && step.Await.FaultsOver && !p.faults {
		add("faultsOver: there are no faults by then")
	}
}

// FaultProblems returns faults of containers that a task does not have, by its definition, and of
// links where tasks have none. All else about faults is checked when the file is read.
func (s *Scenario) FaultProblems(containers map[string][]string, noLinks bool) []error {
	targets := s.faultTargets(containers)
	targets.NoLinks = noLinks
	errs := chaos.Problems(s.Faults, targets)
	for i, step := range s.Steps {
		for _, err := range chaos.Problems(step.Faults, targets) {
			errs = append(errs, fmt.Errorf("steps[%d]: %w", i, err))
		}
	}
	return errs
}

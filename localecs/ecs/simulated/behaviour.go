package simulated

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
)

// Variable is the environment variable of a container that sets how it behaves
// when it is simulated, in its definition or in an override.
const Variable = "LOCALECS_SIMULATE"

const never = time.Duration(-1)

// Behaviour is what a simulated container does. The zero Behaviour exits at once.
type Behaviour struct {
	// NoStart is why it cannot be started; empty when it can.
	NoStart string
	// ExitAfter is how long after its start it exits by itself with ExitCode;
	// negative for never.
	ExitAfter time.Duration
	ExitCode  int
	// UnhealthyAfter is how long after its start its health checks begin to fail;
	// negative for never.
	UnhealthyAfter time.Duration
	// StopAfter is how long after the stop signal it exits with 0; negative when
	// it ignores the signal.
	StopAfter time.Duration
}

// ParseBehaviour reads a value of Variable over what a container does without
// one: parts are separated by commas.
//
//	start=TEXT      cannot be started, TEXT is why
//	exit=N          exits by itself with N, 0 to 255, at once
//	after=D         at which time: D after its start
//	unhealthy=D     fails its health checks from D after its start on
//	stop=D          exits D after its stop signal; stop=never ignores it
func ParseBehaviour(text string, b Behaviour) (Behaviour, error) {
	after := time.Duration(0)
	exits := false
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var err error
		switch name {
		case "start":
			b.NoStart = value
		case "exit":
			exits = true
			b.ExitCode, err = exitCode(value)
		case "after":
			after, err = duration(value)
		case "unhealthy":
			b.UnhealthyAfter, err = duration(value)
		case "stop":
			if b.StopAfter = never; value != "never" {
				b.StopAfter, err = duration(value)
			}
		default:
			err = fmt.Errorf("want start=TEXT, exit=N, after=D, unhealthy=D, stop=D or stop=never")
		}
		if err != nil {
			return b, fmt.Errorf("%s: %q: %w", Variable, part, err)
		}
	}
	if exits {
		b.ExitAfter = after
	} else if after > 0 {
		return b, fmt.Errorf("%s: %q: after=D requires exit=N", Variable, text)
	}
	return b, nil
}

func exitCode(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > 255 {
		return 0, fmt.Errorf("want an exit code, 0 to 255")
	}
	return n, nil
}

func duration(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("want a duration such as 10s")
	}
	return d, nil
}

// behaviour returns the behaviour of a container of a definition: one that others wait for to COMPLETE
// or SUCCEED exits with 0 at once, all others run until they are stopped, unless Variable has another
// behaviour.
func behaviour(def *taskdef.TaskDefinition, c *taskdef.Container, stop time.Duration) (Behaviour, error) {
	b := Behaviour{ExitAfter: never, UnhealthyAfter: never, StopAfter: stop}
	for i := range def.ContainerDefinitions {
		for _, e := range def.ContainerDefinitions[i].Edges() {
			if e.To == c.Name && (e.Condition == taskdef.ConditionComplete || e.Condition == taskdef.ConditionSuccess) {
				b.ExitAfter = 0
			}
		}
	}
	i := slices.IndexFunc(c.Environment, func(v taskdef.KeyValue) bool { return v.Name == Variable })
	if i < 0 {
		return b, nil
	}
	return ParseBehaviour(c.Environment[i].Value, b)
}

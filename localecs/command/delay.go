package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
)

// Lag is the value of -lag.
type Lag struct{ controlplane.Lag }

// String implements flag.Value.
func (l *Lag) String() string { return "" }

// Set implements flag.Value.
func (l *Lag) Set(s string) error {
	return setDurations(s, []duration{{"new", &l.New}, {"eni", &l.Interface}, {"tags", &l.Tags}, {"lists", &l.Lists}, {"counts", &l.Counts}})
}

// Timing is the value of -timing.
type Timing struct{ simulated.Timing }

// Usual is long enough for people to see what tasks go through.
func Usual() Timing {
	return Timing{simulated.Timing{Attach: time.Second, Pull: time.Second, Start: time.Second / 2, Stop: time.Second / 2, Detach: time.Second}}
}

func (t *Timing) parts() []duration {
	return []duration{{"attach", &t.Attach}, {"pull", &t.Pull}, {"start", &t.Start}, {"stop", &t.Stop}, {"detach", &t.Detach}}
}

// String implements flag.Value.
func (t *Timing) String() string {
	var parts []string
	for _, d := range t.parts() {
		parts = append(parts, d.name+"="+d.to.String())
	}
	return strings.Join(parts, ",")
}

// Set implements flag.Value.
func (t *Timing) Set(s string) error { return setDurations(s, t.parts()) }

// duration is one part of a flag that has several.
type duration struct {
	name string
	to   *time.Duration
}

// setDurations reads name=D,name=D. What is not named stays.
func setDurations(s string, known []duration) error {
	want := []string{}
	byName := map[string]*time.Duration{}
	for _, d := range known {
		want, byName[d.name] = append(want, d.name+"=D"), d.to
	}
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(part, "=")
		to := byName[name]
		if to == nil {
			return fmt.Errorf("want %s or some of them, got %q", strings.Join(want, ","), part)
		}
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return fmt.Errorf("%s: want a duration such as 2s, got %q", name, value)
		}
		*to = d
	}
	return nil
}

package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/controlplane/record"
	"github.com/meshtask/consul-ecs/localecs/simulated"
)

// lag is the value of -lag.
type lag struct{ record.Lag }

// String implements flag.Value.
func (l *lag) String() string { return "" }

// Set implements flag.Value.
func (l *lag) Set(s string) error {
	return setDurations(s, []duration{{"new", &l.New}, {"eni", &l.Interface}, {"tags", &l.Tags}, {"lists", &l.Lists}, {"counts", &l.Counts}})
}

// timing is the value of -timing.
type timing struct{ simulated.Timing }

// usualTiming is long enough for people to see what tasks go through.
func usualTiming() timing {
	return timing{simulated.Timing{Attach: time.Second, Pull: time.Second, Start: time.Second / 2, Stop: time.Second / 2, Detach: time.Second}}
}

func (t *timing) parts() []duration {
	return []duration{{"attach", &t.Attach}, {"pull", &t.Pull}, {"start", &t.Start}, {"stop", &t.Stop}, {"detach", &t.Detach}}
}

// String implements flag.Value.
func (t *timing) String() string {
	var parts []string
	for _, d := range t.parts() {
		parts = append(parts, d.name+"="+d.to.String())
	}
	return strings.Join(parts, ",")
}

// Set implements flag.Value.
func (t *timing) Set(s string) error { return setDurations(s, t.parts()) }

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

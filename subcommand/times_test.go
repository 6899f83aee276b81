package subcommand

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

type seconds []time.Duration

// TestTextsHaveTheTimesOfTheStopBudget compares the times of a stop in --help and in the pages with those that
// the program keeps at the default stop timeout.
func TestTextsHaveTheTimesOfTheStopBudget(t *testing.T) {
	t.Parallel()
	const stop = taskdef.DefaultStopTimeout * time.Second
	b := workload.NewStopBudget(stop)
	for _, c := range []struct {
		where, text string // a command or a page; %s stands for a time
		times       seconds
	}{
		{"health-sync", "after them, or %s before the stop timeout ends", seconds{stop - b.ServiceLogout}},
		{"health-sync", "logged out when Envoy has stopped, after %s at most", seconds{b.Gateway}},
		{"health-sync", "stopped, %s before the stop timeout ends at the latest", seconds{stop - b.Deregister}},
		{"token-receive", "at the latest %s before the stop timeout ends", seconds{stop - b.ServiceLogout}},
		{"app-entrypoint", "not before %s after TERM", seconds{b.MinDelay}},
		{"app-entrypoint", "After %s, or a sixth of the stop timeout", seconds{b.MaxDelay}},
		{"envoy-entrypoint", "at least %s and at most %s, or a sixth", seconds{b.MinDelay, b.MaxDelay}},
		{"client-entrypoint", "at most until %s before the stop timeout ends", seconds{stop - b.Leave}},
		{"docs/AGENT.md", "assume %s, see their `-stop-timeout`", seconds{stop}},
		{"docs/AGENT.md", "At %s health-sync logs Envoy's token out, at %s the agent leaves",
			seconds{b.ServiceLogout, b.Leave}},
		{"docs/COMPATIBILITY.md", "after all other containers, at the latest %s before `-stop-timeout` ends",
			seconds{stop - b.Leave}},
		{"docs/COMPATIBILITY.md", "after the applications have stopped, at the latest %s before `-stop-timeout` ends",
			seconds{stop - b.ServiceLogout}},
		{"docs/COMPATIBILITY.md", "and %s have passed", seconds{b.MinDelay}},
		{"docs/COMPATIBILITY.md", "which holds TERM back, up to %s", seconds{b.MaxDelay}},
		{"docs/COMPATIBILITY.md", "until Envoy has stopped, at most %s", seconds{b.Gateway}},
		{"docs/TRAFFIC.md", "at least %s and at most %s later", seconds{b.MinDelay, b.MaxDelay}},
		{"README.md", "at the latest after %s", seconds{b.MaxDelay}},
	} {
		text := ""
		if command, ok := commands()[c.where]; ok {
			text = command.Help
		} else {
			page, err := os.ReadFile("../" + c.where)
			if err != nil {
				t.Fatal(err)
			}
			text = string(page)
		}
		var times []any
		for _, d := range c.times {
			times = append(times, strconv.FormatFloat(d.Seconds(), 'f', -1, 64)+" s")
		}
		if want := fmt.Sprintf(c.text, times...); !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%s does not say %q", c.where, want)
		}
	}
}

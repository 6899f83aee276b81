package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestAllowances(t *testing.T) {
	t.Parallel()
	dead := []string{ // health-sync, at 10 s
		"api-1 its services' token stays, 10.00s permanently: the process that logs it out was killed; the ACL " +
			"controller removes it",
		"api-1 the task is out of traffic, 10.00s permanently: its checks are not refreshed",
		"api-1 updates about it are late, 10.00s to 41.00s: its checks pass until their TTL runs out",
	}
	agent := func(task string, at float64) []string {
		return []string{
			fmt.Sprintf("%s its agent is failed, %.2fs permanently: it did not leave; the servers forget it after 15 "+
				"minutes", task, at),
			fmt.Sprintf("%s the task ends, %.2fs to %.2fs: in its first minute ECS does not start it again; before, "+
				"its token is logged out, for 10 s where no server answers", task, at, at+13),
			fmt.Sprintf("%s the task is out of traffic, %.2fs to %.2fs: its node is taken out of the catalog, or it "+
				"starts again", task, at, at+15),
		}
	}
	for name, c := range map[string]struct {
		events []Event
		want   []string
	}{
		"an Envoy": {[]Event{kill(10*s, "api-1", "sidecar-proxy", "envoy")}, []string{
			"api-1 the task ends, 10.00s to 13.00s: its container is essential",
			"api-1 the task is out of traffic, 10.00s permanently: its task ends",
			"api-1 a request fails, 10.00s to 11.00s: callers learn of it a moment later",
		}},
		"an Envoy, and the server is away": {[]Event{server(5*s, 10*s), kill(10*s, "api-1", "sidecar-proxy", "envoy")},
			[]string{
				" updates about it are late, 5.00s to 30.00s: the servers cannot be updated meanwhile",
				" servers out of reach, 5.00s to 18.00s: logout is not possible",
				" tasks start late, 5.00s to 30.00s: nothing can log in or register",
				" the task is out of traffic, 5.00s to 45.00s: a server that comes back knows agents when they have " +
					"joined",
				" a request fails, 15.00s to 30.00s: it contacts the agents that it knew one after the other; if it " +
					"becomes leader before, it removes all from the catalog until they register again",
				" the token of a login stays, 5.00s to 16.00s: its answer does not come; the ACL controller removes " +
					"the token",
				"api-1 the task ends, 10.00s to 13.00s: its container is essential",
				"api-1 the task is out of traffic, 10.00s permanently: its task ends",
				"api-1 a request fails, 10.00s to 39.00s: callers learn of it a moment later",
			}},
		"a health-sync": {[]Event{kill(10*s, "api-1", "consul-ecs-health-sync", "")}, dead},
		"a health-sync, and long after it another task's agent": {[]Event{
			kill(10*s, "api-1", "consul-ecs-health-sync", ""), kill(20*s, "api-2", "consul-client", "consul"),
			kill(41*s, "api-1", "consul-client", "consul"),
		}, append(slices.Clone(dead), append(agent("api-2", 20), agent("api-1", 41)...)...)},
		"a health-sync and its agent": {[]Event{kill(10*s, "api-1", "consul-ecs-health-sync", ""),
			kill(39*s, "api-1", "consul-client", "consul")},
			append(append(slices.Clone(dead),
				"api-1 updates about it are late, 10.00s to 71.00s: the restarted agent restores the status of its "+
					"checks, for another TTL"), agent("api-1", 39)...)},
		"an application for a short time": {[]Event{freeze(10*s, time.Second, "api-1", "api")}, nil},
		"a partition of two callees":      {[]Event{partition(10*s, 5*s, "api-1", "api-2")}, nil},
		"a partition from the entry": {[]Event{partition(10*s, 5*s, "api-1", "web")},
			[]string{"api-1 a request fails, 10.00s to 23.00s: only these two tasks notice the partition"}},
		"an endpoint for a short time": {[]Event{endpoint(10*s, 5*s, Protection)}, nil},
		"who asks the servers for a token": {[]Event{endpoint(10*s, 5*s, STS)}, []string{
			" the token of a login stays, 10.00s to 16.00s: its answer does not come; the ACL controller removes the " +
				"token",
			" tasks start late, 10.00s to 25.00s: the login of a starting task needs it",
		}},
	} {
		var got []string
		for _, e := range Allowances(schedule(c.events...), helloDefinition()) {
			got = append(got, e.String())
			if e.Rule.Source == "" {
				t.Errorf("%s: without a source: %+v", name, e)
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// A rule that no event can meet allows nothing, and hides a mistake.
func TestEveryRuleMatchesAnEvent(t *testing.T) {
	testkit.Long(t) // up to 2000 schedules
	t.Parallel()
	met := map[Rule]bool{}
	w := helloDefinition()
	w.Tasks = append(w.Tasks, w.Tasks[1])
	w.Tasks[3].Name = "api-3"
	w.Tasks[0].Fail = "http://127.0.0.1/fail"
	unmet := func() []Rule {
		// schedules are kinder than that
		return slices.DeleteFunc(Rules(), func(r Rule) bool { return met[r] || r.Longer >= 16*s })
	}
	for seed := uint64(0); seed < 2000 && len(unmet()) > 0; seed++ {
		made := Generate(rand.New(rand.NewPCG(seed, 1)), 2*time.Minute, w)
		for _, e := range made.Events {
			task, on := e.target(w, made)
			for _, r := range Rules() {
				met[r] = met[r] || (r.On == "" || r.On == on) && r.about(e, task, w) && r.together(e, made, w)
			}
		}
	}
	for _, r := range unmet() {
		t.Errorf("never met: %+v", r)
	}
}

func TestTheDocumentationShowsTheRules(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "localecs", "chaos.md"))
	if err != nil {
		t.Fatal(err)
	}
	if table := ruleTable(); !strings.Contains(string(page), table) {
		t.Errorf("docs/localecs/chaos.md does not show what faults may cost:\n\n%s", table)
	}
}

// ruleTable returns the table of docs/localecs/chaos.md. Kinds of the same cost share a row.
func ruleTable() string {
	var b strings.Builder
	b.WriteString("| Fault | Of | May cost | From its beginning to its end, and | Why | Source " +
		"|\n|---|---|---|---|---|---|\n")
	kinds := map[Rule][]string{}
	all := Rules()
	for i, r := range all {
		kind := r.Kind
		r.Kind = ""
		kinds[r], all[i] = append(kinds[r], kind), r
	}
	for _, r := range all {
		if kinds[r] == nil {
			continue
		}
		of := strings.Trim(r.On+", "+r.At, ", ")
		if r.AllTasks {
			of += ", of every task"
		}
		if r.With != "" {
			of += ", with " + string(r.With)
		}
		if r.Below > 0 {
			of += fmt.Sprintf("below %d kbit/s", r.Below)
		}
		if r.Alone {
			of += ", with an agent that does not answer it"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", strings.Join(kinds[r], ", "), of, r.What, window(r),
			r.Reason, r.Source)
		delete(kinds, r)
	}
	return b.String()
}

// window describes the window of the rule.
func window(r Rule) string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(r.Forever, "permanently")
	add(r.Alone, "from its end on")
	add(r.Late > 0, "%s after", r.Late)
	add(r.AtMost > 0, "at most %s", r.AtMost)
	add(r.UntilUpdated, "until updates arrive")
	add(r.Longer > 0, "only if it lasts %s", r.Longer)
	return strings.Join(parts, "; ")
}

// String returns a line for each event.
func (s Schedule) String() string {
	var b strings.Builder
	for _, e := range s.Events {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// String describes the allowance in a line.
func (e Allowance) String() string {
	to := "permanently"
	if e.To != forever {
		to = fmt.Sprintf("to %.2fs", e.To.Seconds())
	}
	return fmt.Sprintf("%s %s, %.2fs %s: %s", e.Task, e.What, e.From.Seconds(), to, e.Rule.Reason)
}

package chaos

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// A record that must be caught, and its neighbour that must not.
func TestCheck(t *testing.T) {
	t.Parallel()
	stop := func(at time.Duration, task string) Event { return Event{At: at, Stop: task} }
	envoy := kill(10*s, "api-1", "sidecar-proxy", "envoy")
	for name, c := range map[string]struct {
		schedule Schedule
		seen     Observed
		want     []string
	}{
		"all well": {schedule(), well(), nil},
		"a lost request": {schedule(), with(well(), failed(5*s, 5*s+s/10)), []string{
			"5.00s: no request fails: after 100ms: 503",
		}},
		"lost to a killed Envoy": {schedule(envoy), with(ended(10*s, 20*s, 10*s), failed(10*s+s/2, 11*s)), nil},
		"lost long after it": {schedule(envoy), with(ended(10*s, 20*s, 10*s), failed(12*s, 13*s)), []string{
			"12.00s: no request fails: after 1s: 503",
		}},
		"lost long after it on a late machine": {schedule(envoy),
			with(with(ended(10*s, 20*s, 10*s), failed(12*s, 13*s)), func(o *Observed) {
				o.Delays = []Delay{{12 * s, 200 * time.Millisecond}}
			}), nil},
		"lost to an orderly stop": {schedule(stop(10*s, "api-1")), with(ended(10*s, 20*s, 10*s), failed(15*s, 16*s)),
			[]string{
				"15.00s: no request fails: after 1s: 503",
			}},
		"lost to an orderly stop of which the server could not tell": {schedule(server(5*s, 10*s),
			stop(10*s, "api-1")), with(ended(10*s, 20*s, 17*s), failed(16*s, 17*s)), nil},
		"lost to its Envoy while its application still served": {schedule(server(5*s, 10*s),
			stop(10*s, "api-1")), with(ended(10*s, 20*s, 17*s), failed(11*s, 12*s)),
			[]string{"11.00s: no request fails: after 1s: 503"}},
		"lost to a killed agent": {schedule(kill(10*s, "api-1", "consul-client", "consul")),
			with(ended(10*s, 20*s, 10*s), failed(11*s, 12*s)), []string{"11.00s: no request fails: after 1s: 503"}},
		"lost to a killed client-entrypoint, whose services stay until gossip finds it": {schedule(kill(10*s, "api-1",
			"consul-client", "")), with(ended(10*s, 20*s, 20*s), failed(16*s, 17*s)), nil},
		"lost to a task that is frozen": {schedule(freeze(10*s, 8*s, "api-1", "sidecar-proxy")),
			with(well(), failed(10*s, 15*s)), nil},
		"lost to a task that is frozen shortly": {schedule(freeze(10*s, 3*s, "api-1", "sidecar-proxy")),
			with(well(), failed(10*s, 15*s)), []string{"10.00s: no request fails: after 5s: 503"}},
		"lost to an endpoint": {schedule(endpoint(10*s, 10*s, Metadata)), with(well(), failed(12*s, 13*s)),
			[]string{"12.00s: no request fails: after 1s: 503"}},

		"unhealthy for long in traffic": {schedule(), with(well(), func(o *Observed) {
			o.States = append([]State{{20 * s, "api-1", "api", true, "is UNHEALTHY"},
				{30 * s, "api-1", "api", false, "is HEALTHY"}}, o.States...)
		}), []string{"23.00s api-1: no instance in traffic that cannot serve: api is UNHEALTHY at 20.00s, and Consul " +
			"sends it traffic until 70.00s"}},
		"unhealthy for a moment": {schedule(), with(well(), func(o *Observed) {
			o.States = append([]State{{20 * s, "api-1", "api", true, "is UNHEALTHY"},
				{22 * s, "api-1", "api", false, "is HEALTHY"}}, o.States...)
		}), nil},
		"unhealthy while the server is out of reach": {schedule(partition(15*s, 10*s, "api-1", Server)),
			with(well(), func(o *Observed) {
				o.States = append([]State{{20 * s, "api-1", "api", true, "is UNHEALTHY"},
					{30 * s, "api-1", "api", false, "is HEALTHY"}}, o.States...)
			}), nil},

		"in traffic after its TERM": {schedule(stop(10*s, "api-1")), ended(10*s, 20*s, 18*s), []string{
			"13.00s api-1: no instance in traffic after its TERM: it was asked to stop at 10.00s, and Consul sends " +
				"it traffic from -3.00s until 18.00s",
		}},
		"in traffic again after its TERM": {schedule(stop(10*s, "api-1")),
			with(ended(10*s, 20*s, 10*s), func(o *Observed) {
				o.Traffic = append(o.Traffic, TrafficChange{15 * s, "api-1", true},
					TrafficChange{16 * s, "api-1", false})
			}), []string{
				"15.00s api-1: no instance in traffic after its TERM: it was asked to stop at 10.00s, and Consul " +
					"sends it traffic from 15.00s until 16.00s",
			}},
		"in traffic after its TERM, its health-sync killed": {schedule(kill(s, "api-1", "consul-ecs-health-sync", ""),
			stop(10*s, "api-1")), ended(10*s, 20*s, 19*s), nil},
		"in traffic after its TERM, its health-sync and its agent killed": {
			schedule(kill(s, "api-1", "consul-ecs-health-sync", ""), kill(20*s, "api-1", "consul-client", "consul"),
				stop(45*s, "api-1")),
			ended(45*s, 55*s, 54*s), nil,
		},
		"in traffic after its TERM, its health-sync killed, and its agent when that had been seen": {
			schedule(kill(s, "api-1", "consul-ecs-health-sync", ""), kill(35*s, "api-1", "consul-client", "consul"),
				stop(45*s, "api-1")),
			ended(45*s, 55*s, 54*s),
			[]string{
				"48.00s api-1: no instance in traffic after its TERM: it was asked to stop at 45.00s, and Consul " +
					"sends it traffic from -3.00s until 54.00s",
			},
		},

		"a token is left": {schedule(stop(10*s, "api-1")), with(ended(10*s, 20*s, 10*s), func(o *Observed) {
			o.Left = []Leftover{{"api-1", ServiceToken, "token 1", 36 * s}}
		}), []string{"35.00s api-1: nothing left: token 1, which was stopped at 20.00s: gone at 36.00s"}},
		"a token is left of whom no process logs out": {schedule(kill(s, "api-1", "consul-ecs-health-sync", ""),
			stop(10*s, "api-1")), with(ended(10*s, 20*s, 10*s), func(o *Observed) {
			o.Left = []Leftover{{"api-1", ServiceToken, "token 1", Never}}
		}), nil},
		"another token is left of it": {schedule(kill(s, "api-1", "consul-ecs-health-sync", ""), stop(10*s, "api-1")),
			with(ended(10*s, 20*s, 10*s), func(o *Observed) {
				o.Left = []Leftover{{"api-1", ClientToken, "token 2", Never}}
			}), []string{"35.00s api-1: nothing left: token 2, which was stopped at 20.00s: still there at the end"}},
		"a token is left, the server was away for too long": {schedule(server(5*s, 30*s), stop(10*s, "api-1")),
			with(ended(10*s, 40*s, 40*s), func(o *Observed) {
				o.Left = []Leftover{{"api-1", ServiceToken, "token 1", Never}}
			}), nil},
		"a token is left, the server was back in time": {schedule(server(12*s, 13*s), stop(10*s, "api-1")),
			with(ended(10*s, 30*s, 10*s), func(o *Observed) {
				o.Left = []Leftover{{"api-1", ClientToken, "token 1", Never}}
			}), []string{"45.00s api-1: nothing left: token 1, which was stopped at 30.00s: still there at the end"}},
		"the token of a login that was not answered": {schedule(endpoint(12*s, 5*s, IAM), stop(50*s, "api-1")),
			with(ended(50*s, 60*s, 50*s), func(o *Observed) {
				o.Tasks[0].Started, o.Ended = 10*s, 100*s
				o.Traffic[0].At = 25 * s
				o.Left = []Leftover{{"api-1", ClientToken, "token 1", Never}}
			}), nil},
		"a token, and the login was before": {schedule(endpoint(32*s, 5*s, IAM), stop(50*s, "api-1")),
			with(ended(50*s, 60*s, 50*s), func(o *Observed) {
				o.Ended = 100 * s
				o.Left = []Leftover{{"api-1", ClientToken, "token 1", Never}}
			}), []string{"75.00s api-1: nothing left: token 1, which was stopped at 60.00s: still there at the end"}},
		"an agent is failed, the server was away when it left": {schedule(server(12*s, 5*s), stop(10*s, "api-1")),
			with(ended(10*s, 20*s, 10*s), func(o *Observed) {
				o.Left = []Leftover{{"api-1", AgentFails, "agent 1", Never}}
			}), nil},
		"a request after the server was away": {schedule(server(5*s, 5*s)),
			with(well(), failed(14*s, 14*s+s/10)), []string{"14.00s: no request fails: after 100ms: 503"}},
		"a request after the server was away, and one agent as it came back": {schedule(server(5*s, 5*s),
			partition(10*s, 4*s, "api-2", Server)), with(well(), failed(14*s, 14*s+s/10)), nil},
		"a request after the server was away, and one agent before": {schedule(server(5*s, 5*s),
			partition(2*s, 4*s, "api-2", Server)), with(well(), failed(14*s, 14*s+s/10)),
			[]string{"14.00s: no request fails: after 100ms: 503"}},
		"a request after the server was away, and one agent long after": {schedule(server(5*s, 5*s),
			partition(14*s, 4*s, "api-2", Server)), with(well(), failed(15*s, 15*s+s/10)),
			[]string{"15.00s: no request fails: after 100ms: 503"}},
		"a request after the server was away, and one agent was frozen": {schedule(server(5*s, 5*s),
			freeze(6*s, 5*s, "api-2", "consul-client")), with(well(), failed(14*s, 14*s+s/10)), nil},
		"a request after the server was away, and a health-sync was frozen": {schedule(server(5*s, 5*s),
			freeze(6*s, 5*s, "api-2", "consul-ecs-health-sync")), with(well(), failed(14*s, 14*s+s/10)),
			[]string{"14.00s: no request fails: after 100ms: 503"}},
		"a request after the server was away, and two tasks could not see each other": {schedule(server(5*s, 5*s),
			partition(8*s, 5*s, "api-2", "api-1")), with(well(), failed(14*s, 14*s+s/10)),
			[]string{"14.00s: no request fails: after 100ms: 503"}},
		"an agent is failed": {schedule(stop(10*s, "api-1")), with(ended(10*s, 20*s, 10*s), func(o *Observed) {
			o.Left = []Leftover{{"api-1", AgentFails, "agent 1", Never}}
		}), []string{"65.00s api-1: nothing left: agent 1, which was stopped at 20.00s: still there at the end"}},
		"an agent is failed that left while another was cut off": {schedule(partition(5*s, 10*s, "api-2", Server),
			stop(10*s, "api-1")), with(ended(10*s, 20*s, 10*s), func(o *Observed) {
			o.Left = []Leftover{{"api-1", AgentFails, "agent 1", Never}}
		}), nil},
		"an agent is failed that left right after another was cut off": {schedule(partition(2*s, 3*s, "api-2", All),
			stop(30*s, "api-1")), with(ended(30*s, 35*s, 30*s), func(o *Observed) {
			o.Left = []Leftover{{"api-1", AgentFails, "agent 1", Never}}
		}), nil},
		"an agent is failed that left long after another was cut off": {schedule(partition(2*s, 3*s, "api-2", All),
			stop(36*s, "api-1")), with(ended(36*s, 38*s, 36*s), func(o *Observed) {
			o.Left, o.Ended = []Leftover{{"api-1", AgentFails, "agent 1", Never}}, 100*s
		}), []string{"83.00s api-1: nothing left: agent 1, which was stopped at 38.00s: still there at the end"}},
		"a service stays of one that left while another was cut off": {schedule(partition(5*s, 10*s, "api-2", Server),
			stop(10*s, "api-1")), with(ended(10*s, 20*s, 10*s), func(o *Observed) {
			o.Left, o.Ended = []Leftover{{"api-1", Service, "service 1", Never}}, 100*s
		}), []string{"95.00s api-1: nothing left: service 1, which was stopped at 20.00s: still there at the end"}},
		"an agent is failed that left with all others": {schedule(), with(well(), func(o *Observed) {
			o.Left, o.Ended = []Leftover{{"api-1", AgentFails, "agent 1", Never}}, 200*s
		}), nil},
		"a service stays of one that left with all others": {schedule(), with(well(), func(o *Observed) {
			o.Left, o.Ended = []Leftover{{"api-1", Service, "service 1", Never}}, 200*s
		}), []string{"155.00s api-1: nothing left: service 1, which was stopped at 80.00s: still there at the end"}},
		"a service goes with the server's next look": {schedule(stop(10*s, "api-1")),
			with(ended(10*s, 20*s, 10*s), func(o *Observed) {
				o.Left = []Leftover{{"api-1", Service, "service 1", 84 * s}}
			}), nil},

		"a task ends for nothing": {schedule(), ended(10*s, 20*s, 10*s), []string{
			"10.00s api-1: nothing ends without a cause: the task stops unexpectedly",
		}},
		"out of traffic for nothing": {schedule(endpoint(10*s, 10*s, Metadata)), with(well(), func(o *Observed) {
			o.Traffic = append(o.Traffic[:3:3],
				append([]TrafficChange{{15 * s, "api-1", false}, {17 * s, "api-1", true}}, o.Traffic[3:]...)...)
		}), []string{"15.00s api-1: nothing ends without a cause: Consul ceases to send it traffic"}},
		"out of traffic since its agent is frozen": {schedule(freeze(10*s, 10*s, "api-1", "consul-client")),
			with(well(), func(o *Observed) {
				o.Traffic = append(o.Traffic[:3:3],
					append([]TrafficChange{{15 * s, "api-1", false}, {17 * s, "api-1", true}}, o.Traffic[3:]...)...)
			}), nil},
		"out of traffic since another agent says so that was cut off": {schedule(partition(2*s, 10*s, "api-2", All)),
			with(well(), func(o *Observed) {
				o.Traffic = append(o.Traffic[:3:3],
					append([]TrafficChange{{13 * s, "api-1", false}, {14 * s, "api-1", true}}, o.Traffic[3:]...)...)
			}), nil},
		"out of traffic long after that": {schedule(partition(2*s, 10*s, "api-2", All)),
			with(well(), func(o *Observed) {
				o.Traffic = append(o.Traffic[:3:3],
					append([]TrafficChange{{28 * s, "api-1", false}, {29 * s, "api-1", true}}, o.Traffic[3:]...)...)
			}), []string{"28.00s api-1: nothing ends without a cause: Consul ceases to send it traffic"}},
		"not back at the end": {schedule(freeze(10*s, 10*s, "api-1", "consul-client")), with(well(), func(o *Observed) {
			o.Traffic[3].At = 15 * s
		}), []string{
			"69.00s api-1: every task serves again: it is not in traffic after all faults have ended",
		}},
		"a replacement is late": {schedule(), with(well(), func(o *Observed) {
			o.Tasks = append(o.Tasks, TaskLifetime{"api-r1", 10 * s, 70 * s, 80 * s})
			o.Traffic = append(o.Traffic, TrafficChange{60 * s, "api-r1", true}, TrafficChange{70 * s, "api-r1", false})
		}), []string{"55.00s api-r1: every task serves again: started at 10.00s, it is in traffic at 60.00s"}},
		"a replacement is late since the server was away": {schedule(server(12*s, 10*s)),
			with(well(), func(o *Observed) {
				o.Tasks = append(o.Tasks, TaskLifetime{"api-r1", 10 * s, 70 * s, 80 * s})
				o.Traffic = append(o.Traffic, TrafficChange{60 * s, "api-r1", true},
					TrafficChange{70 * s, "api-r1", false})
			}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			allowances := Allowances(c.schedule, helloDefinition())
			for _, v := range Check(c.schedule, helloDefinition(), allowances, c.seen).Violations {
				got = append(got, v.String())
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s\nexcuses: %v", d, allowances)
			}
		})
	}
}

// Without the rules nothing is allowed: what they allow is seen.
func TestCheckWithoutRules(t *testing.T) {
	t.Parallel()
	killed := schedule(kill(10*s, "api-1", "sidecar-proxy", "envoy"))
	seen := with(ended(10*s, 20*s, 10*s), failed(10*s+s/2, 11*s))
	with := Check(killed, helloDefinition(), Allowances(killed, helloDefinition()), seen)
	explained := map[string]int{"kill proxy instance: callers learn of it a moment later (examples/rolling-update)": 1}
	if d := cmp.Diff(explained, with.Allowed); d != "" || len(with.Violations) != 0 {
		t.Errorf("with the rules: %v, allowed (-want +got):\n%s", with.Violations, d)
	}
	got := Check(killed, helloDefinition(), nil, seen).Violations
	if len(got) != 2 {
		t.Fatalf("without: %v", got)
	}
	testkit.Equal(t, "without: got[0].Invariant", got[0].Invariant, NoUnexplainedEnd)
	testkit.Equal(t, "without: got[1].Invariant", got[1].Invariant, NoRequestFails)
}

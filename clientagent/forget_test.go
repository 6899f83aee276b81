package clientagent

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
)

// orphan starts a client-entrypoint whose agent has registered itself.
func orphan(t *testing.T, restarts *int, test func(*fixture)) {
	t.Helper()
	inBubble(t, func(r *fixture) {
		r.metadata.restarts = restarts
		r.run()
		r.taken()
		r.hasNode("id-1\n")
		r.start = time.Now()
		test(r)
	})
}

// hasNode writes the file in which an agent keeps its node ID.
func (r *fixture) hasNode(id string) {
	r.t.Helper()
	path := r.options.path(filepath.Join("consul-client", "data", "node-id"))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(id), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// TestDeadAgentLeavesNoServices: peers learn at once that it has stopped.
func TestDeadAgentLeavesNoServices(t *testing.T) {
	t.Parallel()
	orphan(t, nil, func(r *fixture) {
		r.advance(time.Hour)
		r.child.end(137)
		if code := cli.ExitCode(r.wait()); code != 137 {
			t.Errorf("exit code %d", code)
		}
		r.wantHistory("1h0m0s agent ended 137", "1h0m0s deregister id-1 with secret-1", "1h0m0s log out secret-1")
		if r.logged("node=id-1") != 1 || r.logged("WARN") != 0 {
			t.Errorf("log:\n%s", r.log)
		}
	})
}

// TestAgentThatECSRestartsKeepsItsServices: the next run finds them in its data
// directory, and no peer notices.
func TestAgentThatECSRestartsKeepsItsServices(t *testing.T) {
	t.Parallel()
	count := 0
	for name, c := range map[string]struct {
		runs, stopped time.Duration
		restarts      *int
		keeps         bool
	}{
		"long enough for any policy":   {runs: time.Minute, restarts: &count, keeps: true},
		"too short for a restart":      {runs: time.Minute - 1, restarts: &count},
		"no policy":                    {runs: time.Hour},
		"a task that stops has none":   {runs: time.Hour, stopped: sec, restarts: &count},
		"not even in its first minute": {runs: sec, stopped: sec, restarts: &count},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orphan(t, c.restarts, func(r *fixture) {
				r.advance(c.runs)
				if c.stopped > 0 {
					r.signals <- syscall.SIGTERM
					r.advance(c.stopped)
				}
				at := (c.runs + c.stopped).Round(10 * time.Millisecond).String()
				r.child.end(1)
				r.wait()
				want := []string{at + " agent ended 1", at + " deregister id-1 with secret-1", at + " log out secret-1"}
				if c.keeps {
					want = append(want[:1], want[2])
				}
				r.wantHistory(want...)
				r.wantData(c.stopped == 0)
			})
		})
	}
}

// wantData checks whether the agent's data, with the gossip key and the tokens
// of services, are on the volume.
func (r *fixture) wantData(want bool) {
	r.t.Helper()
	_, err := os.Stat(r.options.path("consul-client/data"))
	if got := err == nil; got != want {
		r.t.Errorf("the agent's data are there: %t, want %t", got, want)
	}
}

// TestNodeOfALeavingAgentIsRemoved: regression: all agents of a
// cluster left at once, and no other agent reported one of them to the server; its
// services stayed.
func TestNodeOfALeavingAgentIsRemoved(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 1} {
		orphan(t, nil, func(r *fixture) {
			r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
			r.child.code = code
			r.signals <- syscall.SIGTERM
			r.wait()
			r.wantHistory("0s signal terminated", fmt.Sprintf("3s agent ended %d", code),
				"3s deregister id-1 with secret-1", "3s log out secret-1")
			r.wantData(false)
			if dead := r.logged("deregistered the node of the dead agent"); dead != code {
				t.Errorf("agent that ended with %d: reported dead %d times", code, dead)
			}
		})
	}
}

func TestNothingToDeregister(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture){
		"no node ID":          func(r *fixture) { r.hasNode("") },
		"no address":          func(r *fixture) { r.options.Config.ConsulHTTPAddr = "" },
		"data kept elsewhere": func(r *fixture) { os.Remove(r.options.path("consul-client/data/node-id")) },
		"nothing but blanks":  func(r *fixture) { r.hasNode(" \n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orphan(t, nil, func(r *fixture) {
				change(r)
				r.child.end(1)
				r.wait()
				r.wantHistory("0s agent ended 1", "0s log out secret-1")
			})
		})
	}
}

// TestNodeThatStaysIsLogged: the logout has its share of the time.
func TestNodeThatStaysIsLogged(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		orphan(t, nil, func(r *fixture) {
			r.session.deregister = errHang
			r.child.leave = -1
			want := []string{"0s agent ended 1", "0s deregister id-1 with secret-1", "5s log out secret-1"}
			if stopped {
				r.signals <- syscall.SIGTERM
				want = []string{"20s signal terminated", "27.5s signal killed to the group", "27.5s agent ended 137",
					"27.5s deregister id-1 with secret-1", "28.5s log out secret-1"}
			} else {
				r.child.end(1)
			}
			r.wait()
			r.wantHistory(want...)
			if r.logged("node of the dead agent was not deregistered") != 1 || r.logged("node=id-1") != 1 {
				t.Errorf("log:\n%s", r.log)
			}
			r.wantFiles()
		})
	}
}

// TestServersOutOfReachLeaveTimeForTheToken: after an orderly leave.
func TestServersOutOfReachLeaveTimeForTheToken(t *testing.T) {
	t.Parallel()
	orphan(t, nil, func(r *fixture) {
		r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
		r.session.deregister = errHang
		r.signals <- syscall.SIGTERM
		r.wait()
		r.wantHistory("0s signal terminated", "3s agent ended 0", "3s deregister id-1 with secret-1",
			"6s log out secret-1")
		if r.logged("cannot check whether the servers know that the agent has left") != 1 {
			t.Errorf("log:\n%s", r.log)
		}
	})
}

// TestAgentEndsWhenTheServersKnowOfItsLeave: consul would stay for its propagation
// delay of 3 s. An agent that had ended before the servers knew would fail.
func TestAgentEndsWhenTheServersKnowOfItsLeave(t *testing.T) {
	t.Parallel()
	const end = "log out secret-1"
	for name, tt := range map[string]struct {
		removed time.Duration
		change  func(*fixture)
		code    int
		want    []string
	}{
		"the servers know soon": {removed: 800 * time.Millisecond, want: []string{
			"800ms removed id-1 for secret-1", "1.3s signal terminated",
			"1.3s agent ended 1", "1.3s deregister id-1 with secret-1", "1.3s " + end}},
		"the servers know late": {removed: 2800 * time.Millisecond, want: []string{
			"2.8s removed id-1 for secret-1", "3s agent ended 0", "3s deregister id-1 with secret-1", "3s " + end}},
		"the servers do not know": {removed: time.Hour, want: []string{
			"3s agent ended 0", "3s deregister id-1 with secret-1", "3s " + end}},
		"the servers cannot be asked": {want: []string{
			"3s agent ended 0", "3s deregister id-1 with secret-1", "3s " + end}},
		"the address of the servers is not known": {
			removed: time.Second, change: func(r *fixture) { r.options.Config.ConsulHTTPAddr = "" }, want: []string{
				"3s agent ended 0", "3s " + end}},
		"the second TERM changes nothing": {
			removed: time.Second, change: func(r *fixture) { r.child.stubborn, r.child.leave = true, -1 }, code: 137,
			want: []string{
				"1s removed id-1 for secret-1", "1.5s signal terminated",
				"27.5s signal killed to the group", "27.5s agent ended 137",
				"27.5s deregister id-1 with secret-1", "27.5s " + end}},
		"the agent fails after the second TERM": {
			removed: time.Second, change: func(r *fixture) {
				r.child.code, r.child.stubborn, r.child.leave = 2, true,
					2*time.Second
			}, code: 2, want: []string{
				"1s removed id-1 for secret-1", "1.5s signal terminated",
				"2s agent ended 2", "2s deregister id-1 with secret-1", "2s " + end}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orphan(t, nil, func(r *fixture) {
				r.session.removed = tt.removed
				if tt.change != nil {
					tt.change(r)
				}
				r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
				r.signals <- syscall.SIGTERM
				if code := cli.ExitCode(r.wait()); code != tt.code {
					t.Errorf("exit code %d, want %d", code, tt.code)
				}
				r.wantHistory(append([]string{"0s signal terminated"}, tt.want...)...)
			})
		})
	}
}

// TestServersAreNotAskedBeforeTheLeave: a node that is removed while other containers
// run would end the agent that they need.
func TestServersAreNotAskedBeforeTheLeave(t *testing.T) {
	t.Parallel()
	orphan(t, nil, func(r *fixture) {
		r.session.removed = time.Second
		r.signals <- syscall.SIGTERM
		r.advance(10 * time.Second)
		r.wantHistory()
		r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
		r.advance(time.Second)
		r.wantHistory("10.25s signal terminated")
		r.wait()
	})
}

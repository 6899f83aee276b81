package clientagent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

func TestStart(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		dir := r.options.Config.BootstrapDir
		r.options.Agent.Partition = "part"
		r.options.Agent.ExtraFiles = []string{dir + "/given.hcl"}
		r.options.Agent.ExtraHCL = `node_name = "mine"`
		r.options.Agent.CACertPEM = certificate
		r.options.Agent.GossipKey = gossipKey
		r.put("given.hcl", "")
		r.run()
		r.wantHistory("0s log in", "0s start")
		want := consulutil.LoginParams{Method: "iam-ecs-client-token", Partition: "part", Meta: map[string]string{
			"consul.hashicorp.com/task-id": "0f9de17a",
			"consul.hashicorp.com/cluster": "arn:aws:ecs:us-west-2:111122223333:cluster/mesh",
			"consul.hashicorp.com/renewed": "true",
		}}
		if d := cmp.Diff(want, r.session.params); d != "" {
			t.Errorf("login (-want +got):\n%s", d)
		}
		ours := dir + "/consul-client"
		if want := []string{r.options.Agent.Program, "agent", "-config-file=" + ours + "/agent.json",
			"-config-file=" + dir + "/given.hcl", "-config-file=" + ours + "/extra.hcl"}; !slices.Equal(r.args, want) {
			t.Errorf("args %q, want %q", r.args, want)
		}
		for name, want := range map[string]string{
			"client-token": "secret-1", "client-token.owner": "client-entrypoint\n",
			"consul-client/extra.hcl": `node_name = "mine"`,
			"consul-client/ca.pem":    certificate, "consul-ca-cert.pem": certificate,
		} {
			if got := r.file(name); got != want {
				t.Errorf("%s is %q", name, got)
			}
		}
		for name, want := range map[string]os.FileMode{
			"client-token": 0o640, "client-token.owner": 0o644, "consul-ca-cert.pem": 0o644,
			"consul-client": 0o700, "consul-client/agent.json": 0o600, "consul-client/extra.hcl": 0o600,
		} {
			r.wantMode(name, want)
		}
		r.child.end(0)
		r.wait()
		// Others may still log out with the CA certificate.
		r.wantFiles("given.hcl", "consul-ca-cert.pem")
	})
}

func (r *fixture) wantMode(name string, want os.FileMode) {
	r.t.Helper()
	info, err := os.Stat(r.options.path(name))
	if err != nil {
		r.t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		r.t.Errorf("%s has mode %04o, want %04o", name, got, want)
	}
}

func TestCompatToken(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		r.options.Compat = true
		r.run()
		r.wantMode("client-token", 0o644)
		r.child.end(0)
		r.wait()
	})
}

// TestWithoutACLs: an agent and its marker, no login.
func TestWithoutACLs(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		r.options.Config.ConsulLogin.Enabled = false
		r.options.Config.ConsulHTTPAddr = ""
		r.put("client-token", "another task's")
		r.run()
		r.wantHistory("0s start")
		if text := r.file("consul-client/agent.json"); strings.Contains(text, `"acl"`) {
			t.Errorf("configuration has ACLs:\n%s", text)
		}
		r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
		r.signals <- syscall.SIGTERM
		if err := r.wait(); err != nil {
			t.Error(err)
		}
		r.wantHistory("0s signal terminated", "3s agent ended 0")
		r.wantFiles("client-token")
	})
}

// TestMarkerComesBeforeTheToken: health-sync logs out a token without one.
func TestMarkerComesBeforeTheToken(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		if err := os.Mkdir(r.options.path("client-token.owner"), 0o755); err != nil {
			t.Fatal(err)
		}
		step := newRun(r.options, Deps{Log: hclog.NewNullLogger()})
		step.session, step.token = r.session, consulutil.Token{Secret: "secret-1"}
		if err := step.writeToken(t.Context()); err == nil {
			t.Error("no error")
		}
		r.wantFiles()
	})
}

// TestFailureAfterTheLoginLogsOut: at every step to come.
func TestFailureAfterTheLoginLogsOut(t *testing.T) {
	t.Parallel()
	inTheWay := func(name string) func(*fixture) {
		return func(r *fixture) {
			if err := os.MkdirAll(filepath.Join(r.options.path(name), "x"), 0o755); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(*fixture)
		exit   int
	}{
		"replication":   {func(r *fixture) { r.session.replicated = &retry.GaveUpError{Err: errFault} }, 3},
		"marker":        {inTheWay("client-token.owner"), 3},
		"token":         {inTheWay("client-token"), 3},
		"configuration": {inTheWay("consul-client/agent.json"), 3},
		"start":         {func(r *fixture) { r.startErr = errors.New("start \"consul\": exec format error") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *fixture) {
				tc.change(r)
				r.run()
				if err := r.wait(); cli.ExitCode(err) != tc.exit {
					t.Errorf("exit %d: %v", cli.ExitCode(err), err)
				}
				r.wantHistory("0s log in", "0s log out secret-1")
				for _, name := range []string{"client-token", "client-token.owner", "consul-client/agent.json"} {
					if info, err := os.Lstat(r.options.path(name)); err == nil && !info.IsDir() {
						t.Errorf("%s is left", name)
					}
				}
			})
		})
	}
}

func TestRefusedLogin(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		r.session.login = &retry.PermanentError{Err: errors.New("refused: add the role's ARN")}
		r.run()
		if err := r.wait(); cli.ExitCode(err) != 2 || err.Error() != "refused: add the role's ARN" {
			t.Errorf("exit %d: %v", cli.ExitCode(err), err)
		}
		r.wantHistory("0s log in")
		r.wantFiles()
	})
}

func TestStartErrorsNameWhatToCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*fixture)
		exit   int
		want   []string
	}{
		"metadata": {func(r *fixture) { r.metadata.err = errFault }, 3,
			[]string{"read task metadata", "500", "ECS agent"}},
		"no address": {func(r *fixture) { r.metadata.networks = nil }, 3, []string{"find task address", "-bind-addr"}},
		"bridge": {func(r *fixture) {
			r.metadata.networks = []workload.Network{{NetworkMode: "bridge", IPv4Addresses: []string{"172.17.0.3"}}}
		}, 1, []string{`network mode "bridge"`, "-bind-addr"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *fixture) {
				tc.change(r)
				r.run()
				err := r.wait()
				if code := cli.ExitCode(err); code != tc.exit {
					t.Errorf("exit %d, want %d: %v", code, tc.exit, err)
				}
				for _, want := range tc.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%v does not name %s", err, want)
					}
				}
				r.wantFiles()
			})
		})
	}
}

// TestSignalDuringTheStart: nothing is left, and nothing starts.
func TestSignalDuringTheStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*fixture)
		want   []string
	}{
		"metadata":    {func(r *fixture) { r.metadata.hang = true }, nil},
		"login":       {func(r *fixture) { r.session.login = errHang }, []string{"0s log in"}},
		"replication": {func(r *fixture) { r.session.replicated = errHang }, []string{"0s log in", "1s log out secret-1"}},
	} {
		for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(name+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(r *fixture) {
					tc.change(r)
					r.run()
					r.signals <- syscall.SIGHUP // for an agent that is not there
					r.advance(sec)
					r.signals <- sig
					err := r.wait()
					var signal *exit.SignalError
					if !errors.As(err, &signal) || signal.Signal != sig {
						t.Errorf("error %v, want that of %s", err, sig)
					}
					if code := cli.ExitCode(err); code != 3 {
						t.Errorf("exit %d, want 3: %v", code, err)
					}
					r.wantHistory(tc.want...)
					r.wantFiles()
				})
			})
		}
	}
}

// After a KILL the container is started again and finds the token of its previous
// run.
func TestPreviousTokenIsOfferedToTheLoginOrLoggedOut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change   func(*fixture)
		previous string
		want     []string
		files    []string
	}{
		"a new token": {func(*fixture) {}, "old",
			[]string{"0s log in", "0s start", "0s agent ended 0", "0s log out secret-1"}, nil},
		"the same again": {func(r *fixture) { r.put("client-token", "secret-1\n") }, "secret-1",
			[]string{"0s log in", "0s start", "0s agent ended 0", "0s log out secret-1"}, nil},
		"login fails": {func(r *fixture) { r.session.login = &retry.PermanentError{Err: errFault} }, "old",
			[]string{"0s log in", "0s log out old"}, nil},
		"logout fails too": {func(r *fixture) {
			r.session.login = errFault
			r.session.logout = func(string) error { return errFault }
		}, "old", []string{"0s log in", "0s log out old"}, []string{"client-token"}},
		"unreadable": {func(r *fixture) {
			os.Remove(r.options.path("client-token"))
			if err := os.Mkdir(r.options.path("client-token"), 0o755); err != nil {
				r.t.Fatal(err)
			}
		}, "", []string{"0s log in", "0s log out secret-1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *fixture) {
				r.put("client-token", "old")
				r.put("client-token.owner", "")
				tc.change(r)
				r.child.end(0)
				r.run()
				r.wait()
				r.wantHistory(tc.want...)
				r.wantFiles(tc.files...)
				if got := r.session.params.Previous; got != tc.previous {
					t.Errorf("login was offered %q, want %q", got, tc.previous)
				}
			})
		})
	}
}

// TestOnlyTheDataOfThisTasksAgentIsKept: a volume of the host may have another task's.
func TestOnlyTheDataOfThisTasksAgentIsKept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ owner, nodeID string }{
		"this task's":    {taskARN, "id-1"},
		"another task's": {taskARN + "1", ""},
		"no task's":      {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *fixture) {
				r.hasNode("id-1\n")
				if tt.owner != "" {
					r.put("consul-client/data/task-arn", tt.owner)
				}
				agent := newRun(r.options, Deps{})
				agent.task = workload.Task{TaskARN: taskARN}
				if err := agent.ownData(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := r.file("consul-client/data/task-arn"); got != taskARN {
					t.Errorf("task %q", got)
				}
				id, err := agent.files.nodeID()
				if err != nil {
					t.Fatal(err)
				}
				if id != tt.nodeID {
					t.Errorf("node ID %q, want %q", id, tt.nodeID)
				}
			})
		})
	}
}

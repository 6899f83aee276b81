package clientagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/cli"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

// TestSettleTimeOutlastsTheAgentsPauses draws watches as consul runs them: each
// failure is followed by no pause at first, then by one that doubles, with up to the
// same again on top.
func TestSettleTimeOutlastsTheAgentsPauses(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(17, 6))
	for range 100_000 {
		joined := time.Duration(random.Int64N(int64(20 * time.Second)))
		var at time.Duration
		for failures := 1; at < joined; failures++ {
			if failures <= 3 {
				at += time.Duration(random.Int64N(int64(time.Millisecond)))
				continue
			}
			pause := time.Second << (failures - 3)
			at += pause + time.Duration(random.Int64N(int64(pause)))
		}
		if answered := at + time.Second/2; answered > joined+settleTime(joined) {
			t.Fatalf("joined after %s, answered after %s, Envoy served after %s", joined, answered, joined+settleTime(joined))
		}
	}
}

func TestXDSIsHeldBackUntilTheAgentHasWhatEnvoyHas(t *testing.T) {
	t.Parallel()
	const never = time.Hour
	for name, tt := range map[string]struct {
		joins, complete time.Duration // after the start
		envoy           error
		want            time.Duration
		log             string
	}{
		"at once":                     {0, 0, nil, 0, "[INFO]  agent serves xDS again, with all resources that Envoy has: elapsed=0s"},
		"soon":                        {sec, 3 * sec, nil, 3 * sec, "[INFO]  agent serves xDS again, with all resources that Envoy has: elapsed=3s"},
		"later than an agent settles": {0, 20 * sec, nil, 20 * sec, "[INFO]  agent serves xDS again, with all resources that Envoy has: elapsed=20s"},
		"what is gone from the mesh":  {0, never, nil, 30 * sec, "[WARN]  agent serves xDS again; Envoy loses resources that are no longer in the mesh: elapsed=30s missing=\"Listener api\""},
		"Envoy cannot be asked":       {0, never, errFault, 5 * sec, "[WARN]  agent serves xDS again; its resources could not be compared with Envoy's: elapsed=5s reason=500"},
		"joined later":                {2 * sec, never, errFault, 11 * sec, "[WARN]  agent serves xDS again; its resources could not be compared with Envoy's: elapsed=11s reason=500"},
		"joined very late":            {time.Minute, never, errFault, holdLimit, "[WARN]  agent serves xDS again; its resources could not be compared with Envoy's: elapsed=3m0s reason=500"},
		"never joined":                {never, never, nil, holdLimit, "[WARN]  agent serves xDS again; its resources could not be compared with Envoy's: elapsed=3m0s reason=\"the agent is not known to have joined\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				r, log := logging()
				r.Joined = func(context.Context) error {
					if time.Since(start) < tt.joins {
						return errors.New("no leader")
					}
					return nil
				}
				r.Missing = func(_ context.Context, bootstrap, agent string) (string, error) {
					if bootstrap != "/consul/envoy-bootstrap.json" || agent != "127.0.0.1:1" {
						t.Errorf("asked for the Envoy of %s and the agent at %s", bootstrap, agent)
					}
					if time.Since(start) < tt.complete && tt.envoy == nil {
						return "Listener api", nil
					}
					return "", tt.envoy
				}
				r.awaitView(t.Context(), "127.0.0.1:1", start)
				if took := time.Since(start); took != tt.want {
					t.Errorf("Envoy is served after %s, want %s", took, tt.want)
				}
				if got := strings.TrimSpace(log.String()); got != tt.log {
					t.Errorf("log: %s\nwant: %s", got, tt.log)
				}
			})
		})
	}
}

// logging is a run whose log a test reads.
func logging() (*run, *bytes.Buffer) {
	log := &bytes.Buffer{}
	return &run{Options: Options{Config: &config.Config{BootstrapDir: "/consul"}}, Ports: Ports{Log: hclog.New(&hclog.LoggerOptions{Output: log, DisableTime: true})}}, log
}

// TestHoldEndsWithTheAgent: its end is no reason to say that it serves.
func TestHoldEndsWithTheAgent(t *testing.T) {
	t.Parallel()
	for name, joined := range map[string]error{"joined": nil, "not joined": errFault} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, log := logging()
				r.Joined = func(context.Context) error { return joined }
				r.Missing = func(context.Context, string, string) (string, error) { return "Listener api", nil }
				ctx, cancel := context.WithTimeout(t.Context(), sec)
				defer cancel()
				r.awaitView(ctx, "127.0.0.1:1", time.Now())
				if log.Len() != 0 {
					t.Errorf("log: %s", log)
				}
			})
		})
	}
}

// TestAgentWithAnotherPortIsNotWaitedFor: the user's configuration may move xDS.
func TestAgentWithAnotherPortIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	r, log := logging()
	address := testkit.ClosedAddress(t)
	if r.awaitListener(t.Context(), address, 200*time.Millisecond) {
		t.Error("an agent that does not listen is taken for one that does")
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "[WARN]") || !strings.Contains(got, "address="+address) {
		t.Errorf("log: %s", got)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	log.Reset()
	if r.awaitListener(ctx, address, testkit.Patience) || log.Len() != 0 {
		t.Errorf("after the end of the agent: log: %s", log)
	}
	served, _ := echo(t)
	if !r.awaitListener(t.Context(), served, testkit.Patience) {
		t.Error("an agent that listens is not found")
	}
}

// echo is an agent's xDS that returns what it gets, and counts connections.
func echo(t *testing.T) (address string, connections *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	connections = new(atomic.Int64)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go io.Copy(c, c)
		}
	}()
	return listener.Addr().String(), connections
}

func TestForwardWaitsUntilReady(t *testing.T) {
	t.Parallel()
	address, connections := echo(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan struct{})
	go forward(ctx, listener, address, ready)

	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte("hello"))
	c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := c.Read(make([]byte, 5)); n != 0 || !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) || connections.Load() != 0 {
		t.Errorf("before ready: read %d bytes, error %v, %d connections to the agent", n, err, connections.Load())
	}
	close(ready)
	c.SetReadDeadline(time.Now().Add(testkit.Patience))
	answer := make([]byte, 5)
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "hello" {
		t.Errorf("after ready: %q, %v", answer, err)
	}
	cancel()
	if _, err := c.Read(answer); err == nil || isTimeout(err) {
		t.Errorf("after the end: %v, want a closed connection", err)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// TestOnlyAnAgentThatStartsAgainIsHeldBack: a first one has nothing to take away, and
// neither has one that finds the data of another task's agent, which it must not use.
func TestOnlyAnAgentThatStartsAgainIsHeldBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		node, task string
		held       bool
	}{
		"first":              {"", "", false},
		"again":              {"id-1\n", taskARN, true},
		"without data":       {"", taskARN, false},
		"another task":       {"id-1\n", taskARN + "1", false},
		"an earlier version": {"id-1\n", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				o := &run{Options: r.options, task: workload.Task{TaskARN: taskARN}}
				if err := o.makeDir(); err != nil {
					t.Fatal(err)
				}
				if tt.node != "" {
					r.hasNode(tt.node)
				}
				if tt.task != "" {
					if err := os.MkdirAll(r.options.path("consul-client/data"), 0o700); err != nil {
						t.Fatal(err)
					}
					r.put("consul-client/data/task-arn", tt.task)
				}
				if err := errors.Join(o.ownData(t.Context()), o.configure(t.Context())); err != nil {
					t.Fatal(err)
				}
				var document struct{ Ports struct{ GRPC int } }
				if err := json.Unmarshal([]byte(r.file("consul-client/agent.json")), &document); err != nil {
					t.Fatal(err)
				}
				if port := document.Ports.GRPC; (port != workload.AgentGRPCPort) != tt.held || port == 0 || (o.heldPort == port) != tt.held {
					t.Errorf("xDS on port %d, held back %d", port, o.heldPort)
				}
				if got := r.file("consul-client/data/task-arn"); got != taskARN {
					t.Errorf("task %q", got)
				}
				if id, err := o.nodeID(); err != nil || (id != "") != tt.held {
					t.Errorf("node ID %q, %v", id, err)
				}
			})
		})
	}
}

// TestAgentGetsAnotherPortWhenItsPortIsInUse: but one that goes on to end is not kept alive.
func TestAgentGetsAnotherPortWhenItsPortIsInUse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		runs   time.Duration
		codes  []int
		again  bool
		starts int
	}{
		"once":                {sec, []int{1, 0}, true, 2},
		"always":              {sec, []int{1, 1, 1, 1}, true, 3},
		"killed":              {sec, []int{137}, true, 1},
		"after it had served": {time.Minute, []int{1}, true, 1},
		"of a first agent":    {sec, []int{1}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				if tt.again {
					r.hasNode("id-1\n")
					r.put("consul-client/data/task-arn", taskARN)
				}
				var ports []int
				r.onStart = func() {
					var document struct{ Ports struct{ GRPC int } }
					if err := json.Unmarshal([]byte(r.file("consul-client/agent.json")), &document); err != nil {
						t.Error(err)
					}
					code := tt.codes[len(ports)]
					ports = append(ports, document.Ports.GRPC)
					agent := &child{history: r.history, ended: make(chan int, 1)}
					time.AfterFunc(tt.runs, func() { agent.end(code) })
					r.child = agent
				}
				r.run()
				err := r.wait()
				if want := tt.codes[tt.starts-1]; cli.ExitCode(err) != want || len(ports) != tt.starts {
					t.Errorf("exit code %d after %d starts, want %d after %d", cli.ExitCode(err), len(ports), want, tt.starts)
				}
				slices.Sort(ports)
				if distinct := slices.Compact(slices.Clone(ports)); len(distinct) != tt.starts {
					t.Errorf("ports %v", ports)
				}
				if got := r.logged("starting it again with another"); got != max(tt.starts-1, 0) && got != tt.starts {
					t.Errorf("%d log lines", got)
				}
			})
		})
	}
}

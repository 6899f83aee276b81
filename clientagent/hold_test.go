package clientagent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

func TestXDSIsHeldBackUntilTheAgentHasSettled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ joins, want time.Duration }{
		"at once":    {0, 5 * time.Second},
		"later":      {2 * time.Second, 11 * time.Second},
		"very late":  {time.Minute, holdLimit},
		"not at all": {time.Hour, holdLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				r := &run{Ports: Ports{Log: hclog.NewNullLogger(), Joined: func(context.Context) error {
					if time.Since(start) < tt.joins {
						return errors.New("no leader")
					}
					return nil
				}}}
				r.awaitSettled(t.Context(), start)
				if took := time.Since(start); took != tt.want {
					t.Errorf("Envoy is served after %s, want %s", took, tt.want)
				}
			})
		})
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

// TestOnlyAnAgentThatStartsAgainIsHeldBack: a first one has nothing to take away.
func TestOnlyAnAgentThatStartsAgainIsHeldBack(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"first": false, "again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				o := &run{Options: r.options}
				if again {
					r.hasNode("id-1\n")
				}
				if err := errors.Join(o.makeDir(), o.configure(t.Context())); err != nil {
					t.Fatal(err)
				}
				var document document
				if err := json.Unmarshal([]byte(r.file("consul-client/agent.json")), &document); err != nil {
					t.Fatal(err)
				}
				if port := document.Ports.GRPC; (port != workload.AgentGRPCPort) != again || port == 0 || (o.heldPort == port) != again {
					t.Errorf("xDS on port %d, held back %d", port, o.heldPort)
				}
			})
		})
	}
}

package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestRole starts a process on a machine, prints its number, and waits to be killed.
func TestRole(t *testing.T) {
	testkit.RunRole(map[string]func([]string) int{"holder": func([]string) int {
		p := NewVPC(t).Host("machine").Run(testkit.ProcessOptions{}, "/bin/sleep", "1000")
		fmt.Println(p.PID)
		<-t.Context().Done()
		return 0
	}})
}

// TestProcessesEndWithTheTest kills a test, which cannot clean up then.
func TestProcessesEndWithTheTest(t *testing.T) {
	t.Parallel()
	NewVPC(t) // or skip
	holder := testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.SelfArgs("holder")...)
	pid, err := strconv.Atoi(holder.Line())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the process on the machine: %v", err)
	}
	holder.Signal(syscall.SIGKILL)
	holder.Wait()
	testkit.Eventually(t, "the process on the machine is gone", func() bool { return syscall.Kill(pid, 0) != nil })
}

// TestEvents proves that servers and their machines fail in the way that a test asks for.
func TestEvents(t *testing.T) {
	t.Parallel()
	v := NewVPC(t)
	client := v.Host("client")
	cluster := v.Start(3, "consul")
	follower := cluster.Follower()
	address := net.JoinHostPort(follower.IP.String(), strconv.Itoa(HTTPPort))

	heal := follower.Isolate()
	testkit.Eventually(t, "a follower without its peers knows no leader", func() bool {
		leader, err := follower.Admin.Status().Leader()
		return err == nil && leader == ""
	})
	if err := dial(client, address); err != nil {
		t.Errorf("a client of a follower without its peers: %v", err)
	}
	heal()

	restore := follower.Drop()
	if err := dial(client, address); !errors.Is(err, os.ErrDeadlineExceeded) &&
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a client of a server whose packets are dropped: %v, want a timeout", err)
	}
	restore()
	if err := dial(client, address); err != nil {
		t.Errorf("a client of a server whose packets arrive again: %v", err)
	}
}

func dial(from *Host, address string) error {
	ctx, cancel := context.WithTimeout(from.vpc.now.Context(), time.Second)
	defer cancel()
	conn, err := from.DialContext(ctx, "tcp", address)
	if err == nil {
		conn.Close()
	}
	return err
}

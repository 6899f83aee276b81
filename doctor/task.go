package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/meshtask/consul-ecs/workload"
)

// Metadata checks that the task metadata are readable.
func Metadata(read func(context.Context) (workload.Task, error)) Check {
	return Check{"task metadata", func(ctx context.Context) (string, error) {
		task, err := read(ctx)
		if err != nil {
			return "", fmt.Errorf("task metadata cannot be read: %w", err)
		}
		return fmt.Sprintf("task %s, %d containers, desired status %s", task.ID(), len(task.Containers),
			task.DesiredStatus), nil
	}}
}

// Start checks how far mesh-init has come, by its outcome with why it failed, or the error of reading them.
func Start(outcome, message string, err error) Check {
	return Check{"mesh-init", func(context.Context) (string, error) {
		switch {
		case err != nil:
			return "", fmt.Errorf("mesh-init has not written its status: %w", err)
		case outcome == "failed":
			return "", errors.New("mesh-init failed: " + message)
		case outcome != "ready":
			return "", errors.New("mesh-init is not ready: still missing: " + message)
		}
		return "ready", nil
	}}
}

// Application checks that the application accepts connections at its port. 0 is no port.
func Application(port int) Check {
	return Check{"application port", func(ctx context.Context) (string, error) {
		if port == 0 {
			return "", Skipf("the service has no port")
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return "", fmt.Errorf("the application does not accept connections at %s: %w", address, err)
		}
		conn.Close()
		return "accepts connections at " + address, nil
	}}
}

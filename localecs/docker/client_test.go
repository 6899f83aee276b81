package docker

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
)

// No call to an engine that takes connections and answers nothing hangs.
func TestEveryCallHasALimit(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "docker.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const limit = 10 * time.Millisecond
	api, err := newClient("unix://"+socket, limit)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	if _, err := api.ContainerInspect(t.Context(), "id", client.ContainerInspectOptions{}); err == nil || !strings.Contains(err.Error(), "timeout awaiting response headers") {
		t.Errorf("inspect: %v", err)
	}
	_, err = hijack(t.Context(), limit, func() (client.HijackedResponse, error) {
		r, err := api.ContainerAttach(t.Context(), "id", client.ContainerAttachOptions{Stream: true})
		return r.HijackedResponse, err
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("attach: %v", err)
	}
}

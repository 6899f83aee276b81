package docker

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
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
	if _, err := api.ContainerInspect(t.Context(), "id"); err == nil || !strings.Contains(err.Error(), "timeout awaiting response headers") {
		t.Errorf("inspect: %v", err)
	}
	_, err = hijack(t.Context(), limit, func() (types.HijackedResponse, error) {
		return api.ContainerAttach(t.Context(), "id", container.AttachOptions{Stream: true})
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("attach: %v", err)
	}
}

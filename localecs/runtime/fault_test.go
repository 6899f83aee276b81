package runtime

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// TestFullDiskIsNoLackOfNamespaces: both have the same error number.
func TestFullDiskIsNoLackOfNamespaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		report stageError
		want   bool
	}{
		{stageError{Step: "open mounts", Text: "/data: no space left on device", Errno: syscall.ENOSPC, Host: true}, true},
		{stageError{Step: "attach mounts", Text: "mkdir /data/x: no space left on device", Errno: syscall.ENOSPC, Host: true, File: true}, false},
	} {
		err := hostFault(fmt.Errorf("start: %w", &tt.report))
		_, missing := errors.AsType[*host.MissingError](err)
		if missing != tt.want || strings.Contains(err.Error(), "namespace") != tt.want {
			t.Errorf("%s became %v", &tt.report, err)
		}
	}
}

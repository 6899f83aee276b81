package meshinit_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/workload"
)

func wantGroup(t *testing.T, s *fixture, want uint32) {
	t.Helper()
	for _, name := range []string{workload.FileServiceToken, workload.FileBootstrap} {
		info, err := os.Stat(filepath.Join(s.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t).Gid; got != want {
			t.Errorf("%s has group %d, want %d", name, got, want)
		}
	}
}

package subcommand

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestInstall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "consul-ecs")
	exits(t, consulECS(t, nil, "install", "-to", dir), 0)
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != 0o755 {
		t.Errorf("mode %v, want 0755", got)
	}

	// A second time, while the first copy is being executed.
	command := append([]string{binary}, worker()[1:]...)
	busy := testkit.StartProcess(t, testkit.ProcessOptions{}, command...)
	busy.Expect("ready")
	exits(t, consulECS(t, nil, "install", "-to", dir), 0)
	if !busy.Running() {
		t.Error("the running copy ended")
	}
	busy.Stdin.Close()
	exits(t, busy, 0)
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d entries in the directory, want the binary only", len(entries))
	}
}

func TestInstallUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{},
		{"-to", ""},
		{"-to", t.TempDir(), "more"},
		{"-to", filepath.Join(t.TempDir(), "missing")},
	} {
		exits(t, consulECS(t, nil, append([]string{"install"}, args...)...), 1)
	}
}

package subcommand

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// On a volume without access control lists no token can be given to the reader: the command
// ends with the cause, after one token.
func TestTokenReaderNeedsAccessControlLists(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a file system")
	}
	testkit.RequireOnPath(t, "sh", "mount")
	m, b := newMetadata(t), newTestBroker(t)
	m.says(200, running)
	dir := t.TempDir()
	line := testkit.SelfArgs("consul-ecs", "token-receive", "-token-file", filepath.Join(dir, "token"),
		"-callback-port", freePort(t), "-token-reader", "1000")
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `mount -t ramfs none "$0" && exec "$@"`, dir},
		line...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	cmd.Env = os.Environ()
	for name, value := range b.env(m) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	const want = "operation not supported: its file system has no access control lists; run this container as that " +
		"user, without -token-reader"
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.HasSuffix(lines[len(lines)-1], want) {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
	if b.pushing.Wait(); b.answered != 502 {
		t.Errorf("push answered %d", b.answered)
	}
}

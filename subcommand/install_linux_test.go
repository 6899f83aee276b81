package subcommand

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// The check needs a few bytes, the copy megabytes.
func TestInstallOnAVolumeThatFillsUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := testkit.SelfArgs("consul-ecs", "install", "-to", dir)
	mounted := make(chan error, 1)
	ended := make(chan string, 1)
	go func() {
		runtime.LockOSThread() // the mount namespace is this thread's
		err := errors.Join(
			unix.Unshare(unix.CLONE_NEWNS),
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("none", dir, "tmpfs", 0, "size=64k"))
		mounted <- err
		if err == nil {
			out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
			ended <- fmt.Sprint(string(out), err)
		}
	}()
	if err := <-mounted; err != nil {
		testkit.Missing(t, "a mount needs more rights: "+err.Error())
	}
	got := <-ended
	if !strings.Contains(got, "no space left on device: increase the size of the volume") ||
		!strings.HasSuffix(got, "exit status 1") {
		t.Errorf("output and status: %s", got)
	}
}

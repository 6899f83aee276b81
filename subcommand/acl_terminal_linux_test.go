package subcommand

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"golang.org/x/sys/unix"
)

// terminal opens one: what is written to screen can be read from user.
func terminal(t *testing.T) (user, screen *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { user.Close() })
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	return user, screen
}

// On a terminal an explanation is a tree.
func TestACLExplainsOnATerminal(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/p.hcl"
	if err := os.WriteFile(file, []byte("acl = \"read\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := testkit.SelfArgs("consul-ecs", "acl", "explain", "-policy-file", file, "acl", "read")
	user, screen := terminal(t)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = screen, t.Output()
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	screen.Close()
	out, _ := io.ReadAll(user) // ends with EIO when no process holds the terminal
	want := "acl read  ALLOW\n├─ wins    acl = read\n│  └─ policy \"" + file +
		"\" line 1\n└─ to deny\n   └─ add     acl = \"deny\"\n"
	if got := strings.ReplaceAll(string(out), "\r\n", "\n"); got != want {
		t.Errorf("got\n%s", got)
	}
}

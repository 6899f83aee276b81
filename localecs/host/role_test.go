package host

import (
	"errors"
	"os/exec"
	"testing"
)

func TestDispatchRunsTheRoleNamedByArgv0(t *testing.T) {
	t.Parallel()
	c := exec.Command(SelfExe)
	c.Args = []string{"host-test-code", "localecs-rootless", "host-test-other", "c"}
	var exit *exec.ExitError
	if err := c.Run(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("got %v, want exit status 3", err)
	}
}

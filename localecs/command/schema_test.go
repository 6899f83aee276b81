package command

import (
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

func TestSchemaIsPrinted(t *testing.T) {
	t.Parallel()
	if got := call(t, "schema"); got.code != 0 || got.stdout != file.JSON() || got.stderr != "" {
		t.Errorf("exit %d, %d bytes, stderr %q", got.code, len(got.stdout), got.stderr)
	}
}

func TestSeedIsANumber(t *testing.T) {
	t.Parallel()
	for _, seed := range []string{"x", "-1", "18446744073709551616"} {
		got := call(t, "run", "-seed", seed, example("faults"))
		if want := "want a number from 0 to 2^64-1"; got.code != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("-seed %s: exit %d, %s", seed, got.code, got.stderr)
		}
	}
}

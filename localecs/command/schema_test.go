package command

import (
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

func TestSchemaIsPrinted(t *testing.T) {
	t.Parallel()
	testkit.Equal(t, "schema", call(t, "schema"), result{stdout: file.JSON()})
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

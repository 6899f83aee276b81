package command

import (
	"testing"

	"github.com/meshtask/consul-ecs/localecs/scenario/file/schema"
)

func TestSchemaIsPrinted(t *testing.T) {
	t.Parallel()
	if got := call(t, "schema"); got.code != 0 || got.stdout != schema.JSON() || got.stderr != "" {
		t.Errorf("exit %d, %d bytes, stderr %q", got.code, len(got.stdout), got.stderr)
	}
}

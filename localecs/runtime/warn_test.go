package runtime

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestUnavailableHostFeaturesAreLoggedOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := &Runtime{log: hclog.New(&hclog.LoggerOptions{Output: &out})}
	r.warn("web/app", []string{"less nofile", "less core"})
	r.warn("api/app", []string{"less nofile"})
	for warning, want := range map[string]int{"less nofile": 1, "less core": 1, "api/app": 0} {
		if got := strings.Count(out.String(), warning); got != want {
			t.Errorf("%d of %q, want %d in\n%s", got, warning, want, out.String())
		}
	}
}

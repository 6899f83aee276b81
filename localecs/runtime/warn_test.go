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
	if got := out.String(); strings.Count(got, "less nofile") != 1 || strings.Count(got, "less core") != 1 || strings.Contains(got, "api/app") {
		t.Errorf("got\n%swant each warning once, with the first container", got)
	}
}

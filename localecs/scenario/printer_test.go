package scenario

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// at is a moment n seconds into a run.
func at(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

func TestPrinterWritesLinesOrObjects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		json bool
		want string
	}{
		{false, "   2.00s  web      sidecar-proxy          RUNNING\n"},
		{true, `"seconds":2,"task":"web","part":"sidecar-proxy","text":"RUNNING"}` + "\n"},
	} {
		var b bytes.Buffer
		newPrinter(&b, c.json, at(0)).event(at(2), "web", "sidecar-proxy", "RUNNING")
		if !strings.HasSuffix(b.String(), c.want) {
			t.Errorf("json %t: got %q, want %q", c.json, b.String(), c.want)
		}
	}
}

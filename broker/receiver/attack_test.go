package receiver

import (
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// Any caller can push to an open callback port: what it sends neither fills the log nor keeps
// the task from its token.
func TestForgedPushesNeitherFillTheLogNorDelayTheToken(t *testing.T) {
	bubble(t, func(t *testing.T, w *fixture) {
		g, result := w.pending(t)
		forged := []string{
			`{"` + strings.Repeat("x", 8<<10) + `":1}`, `{"token":"` + strings.Repeat("\\u001b", 2<<10) + `"}`,
			strings.Repeat("<", MaxBody), strings.Repeat("\n", MaxBody+1), "",
		}
		attacks := testkit.Share(5000)
		for n := range attacks {
			if status, err := w.post([]byte(forged[n%len(forged)])); err != nil || status != 400 {
				t.Fatalf("a forged push was answered with %d, %v", status, err)
			}
		}
		if size := len(w.log.String()); size > 16<<10 {
			t.Errorf("%d bytes of log after %d forged pushes", size, attacks)
		}
		if n := strings.Count(w.log.String(), "push not accepted"); n != linesAtOnce {
			t.Errorf("%d lines about %d forged pushes, want %d", n, attacks, linesAtOnce)
		}
		if status := w.answers(t, w.push(g)); status != 200 {
			t.Errorf("the push of the broker was answered with %d", status)
		}
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

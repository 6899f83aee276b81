package meshinit_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/workload"
)

// A failed second run leaves the first one's registration, files and token
// alone: the task's Envoy may be running with them.
func TestFailedRerunKeepsTheFirstRun(t *testing.T) {
	t.Parallel()
	s := newScene(t, secured, loginDoc)
	s.mustRun()
	token := string(s.file(workload.FileServiceToken))
	s.requests.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/agent/service/") {
			http.Error(w, "no way", http.StatusBadRequest)
			return true
		}
		return false
	}
	if err := s.run(); cli.ExitCode(err) != 2 {
		t.Fatalf("error = %v, want a refusal", err)
	}
	s.service("web-" + s.taskID)
	s.service("web-" + s.taskID + "-sidecar-proxy")
	if got := string(s.file(workload.FileServiceToken)); got != token {
		t.Error("the token file changed")
	}
	if tokens := s.tokens(); len(tokens) != 1 {
		t.Errorf("tokens = %v, want the first run's", tokens)
	}
}

package command

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// AWS's own client takes a service through its life, with tasks that are
// processes.
func TestBoto3DrivesServices(t *testing.T) {
	t.Parallel()
	s := startServe(t, asRoot(t))
	dir := filepath.Join(testkit.Root(), "localecs", "command", "testdata", "serve")
	got, err := s.client(t, "aws-python", filepath.Join(dir, "services.py"))
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	want := `[["created", 2, "COMPLETED", "web:1"], ["rolled over", 2, "COMPLETED", "web:1"], ["rolled back", 2, "COMPLETED", "web:1"], ` +
		`["replaced", 2, "COMPLETED", "web:1"], ["The service cannot be stopped while it is scaled above 0."], ["deleted"]]`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	s.end(t)
}

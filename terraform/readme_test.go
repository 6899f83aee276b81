package terraform_test

import (
	"path"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/terraform/internal/moduledoc"
)

// TestReadmesShowVariablesAndOutputs rewrites the tables with -update.
func TestReadmesShowVariablesAndOutputs(t *testing.T) {
	t.Parallel()
	for _, module := range roots(t, "modules/*/versions.tf") {
		t.Run(path.Base(module), func(t *testing.T) {
			t.Parallel()
			text, err := moduledoc.Fill(module)
			if err != nil {
				t.Fatal(err)
			}
			testkit.Golden(t, path.Join("..", module, "README.md"), text)
		})
	}
}

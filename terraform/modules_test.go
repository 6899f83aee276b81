package terraform_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/terraform/internal/stub"
	"github.com/meshtask/consul-ecs/terraform/internal/tftest"
)

func TestMain(m *testing.M) { os.Exit(tftest.Main(m)) }

// roots returns the directories of all modules and examples.
func roots(t *testing.T, pattern string) (dirs []string) {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		dirs = append(dirs, path.Dir(filepath.ToSlash(file)))
	}
	return dirs
}

// TestModulesPassTheirOwnTests runs the older provider in the long lane only.
func TestModulesPassTheirOwnTests(t *testing.T) {
	t.Parallel()
	for _, module := range roots(t, "modules/*/versions.tf") {
		for _, aws := range []stub.AWS{stub.AWS5, stub.AWS6} {
			t.Run(path.Base(module)+"/aws-"+string(aws), func(t *testing.T) {
				t.Parallel()
				if aws == stub.AWS5 {
					testkit.Long(t)
				}
				tftest.New(t, module, aws).Test() // which validates
			})
		}
	}
}

// TestEveryModuleHasTests keeps terraform test from passing because it found no file.
func TestEveryModuleHasTests(t *testing.T) {
	t.Parallel()
	for _, module := range roots(t, "modules/*/versions.tf") {
		files, err := filepath.Glob(filepath.Join(module, "tests", "*.tftest.hcl"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no tests/*.tftest.hcl (%v)", module, err)
		}
	}
}

func TestConfigurationIsFormatted(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), tftest.Require(t), "fmt", "-check", "-recursive", "-diff",
		".").CombinedOutput()
	if err != nil {
		t.Errorf("run `terraform fmt -recursive terraform`: %v\n%s", err, out)
	}
}

func TestNoLockFileIsKept(t *testing.T) {
	t.Parallel()
	testkit.RequireOnPath(t, "git")
	files, err := exec.CommandContext(t.Context(), "git", "ls-files", "*.terraform.lock.hcl", "*.tfstate").Output()
	if err != nil {
		t.Fatal(err)
	}
	if list := strings.Fields(string(files)); len(list) > 0 {
		t.Errorf("%q are in the repository: a lock file holds the checksum of the stub", list)
	}
}

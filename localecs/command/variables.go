package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// Vars collects -var name=value.
type Vars map[string]string

// String implements flag.Value.
func (v Vars) String() string { return "" }

// Set implements flag.Value.
func (v Vars) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return fmt.Errorf("want name=value, got %q", s)
	}
	v[name] = value
	return nil
}

// Found are the variables: given ones, else what is found here.
func (v Vars) Found() (map[string]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, &host.MissingError{What: "find this program", Need: "/proc", Instead: "mount it", Err: err}
	}
	bin := filepath.Dir(self)
	values := map[string]string{"bin": bin}
	for _, name := range []string{"consul", "envoy"} {
		if path := Find(name, bin); path != "" {
			values[name] = path
		}
	}
	for name, value := range v {
		values[name] = value
	}
	return values, nil
}

// Find looks in .tools/bin beside the directory of this program and below the
// working directory, then on PATH.
func Find(name, bin string) string {
	for _, dir := range []string{filepath.Join(filepath.Dir(bin), ".tools", "bin"), filepath.Join(".tools", "bin")} {
		if p, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
			if p, err = filepath.Abs(p); err == nil {
				return p
			}
		}
	}
	p, _ := exec.LookPath(name)
	return p
}

package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/runtime/image"
)

// HostImages are the scenario's images with their variables filled in. Programs
// that this machine does not have are all named in the error.
func (s *Scenario) HostImages(vars map[string]string) (map[string]image.Image, error) {
	images := map[string]image.Image{}
	var errs []error
	for name, i := range s.Images {
		programs := map[string]string{}
		for inside, host := range i.Programs {
			path, err := s.program(host, vars)
			if err != nil {
				errs = append(errs, fmt.Errorf("images[%q].programs[%q]: %w", name, inside, err))
			}
			programs[inside] = path
		}
		images[name] = image.Image{
			Name: name, Programs: programs, Env: i.Env,
			Entrypoint: i.Entrypoint, Cmd: i.Cmd, User: i.User, StopSignal: i.StopSignal,
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return images, errors.Join(errs...)
}

// program is the host path of a program: variables filled in, relative paths
// from the scenario's directory.
func (s *Scenario) program(host string, vars map[string]string) (string, error) {
	var missing []error
	path := os.Expand(host, func(name string) string {
		value, ok := vars[name]
		if !ok {
			missing = append(missing, fmt.Errorf("needs ${%s}, which was not found: run 'make tools' or give -var %s=PATH", name, name))
		}
		return value
	})
	if len(missing) > 0 {
		return "", errors.Join(missing...)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Dir, path)
	}
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !st.Mode().IsRegular() || st.Mode()&0o111 == 0:
		return "", fmt.Errorf("%s is not a program", path)
	}
	return filepath.EvalSymlinks(path)
}

package file

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/internal/textfile"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// HostImages are the scenario's images with their variables filled in. What this
// machine does not have, or what lacks something it needs, is all named in the error.
func (s *Scenario) HostImages(vars map[string]string) (map[string]runtime.Image, error) {
	images := map[string]runtime.Image{}
	var errs []error
	var resolver runtime.Resolver
	for name, i := range s.Images {
		of, missing := i.Host(name, s.Dir, vars, &resolver)
		images[name], errs = of, append(errs, missing...)
	}
	return images, joinSorted(errs)
}

// EnvironmentFileTexts are the contents of the scenario's environment files, by
// ARN. Files that cannot be read are all named in the error.
func (s *Scenario) EnvironmentFileTexts() (map[string]string, error) {
	texts := map[string]string{}
	var errs []error
	for arn, path := range s.EnvironmentFiles {
		data, err := textfile.Read(s.inDir(path), maxBytes)
		if err != nil {
			errs = append(errs, fmt.Errorf("environmentFiles[%q]: %w", arn, err))
		}
		texts[arn] = string(data)
	}
	return texts, joinSorted(errs)
}

// inDir is a path of the scenario file: relative ones start at its directory.
func (s *Scenario) inDir(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.Dir, path)
}

// joinSorted joins what a map has produced, in a lasting order.
func joinSorted(errs []error) error {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

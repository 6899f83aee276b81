package file

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/internal/textfile"
	"github.com/meshtask/consul-ecs/localecs/runtime/image"
	"github.com/meshtask/consul-ecs/localecs/scenario/file/program"
)

// HostImages are the scenario's images with their variables filled in. Programs
// that this machine does not have, or that lack something they need, are all
// named in the error.
func (s *Scenario) HostImages(vars map[string]string) (map[string]image.Image, error) {
	images := map[string]image.Image{}
	var errs []error
	var resolver image.Resolver
	for name, i := range s.Images {
		programs := map[string]string{}
		for inside, host := range i.Programs {
			path, err := program.Find(host, s.Dir, vars)
			if err == nil {
				programs[inside], err = path, lacking(&resolver, image.Bind{Source: path, Target: inside})
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("images[%q].programs[%q]: %w", name, inside, err))
			}
		}
		images[name] = image.Image{
			Name: name, Programs: programs, Env: i.Env,
			Volumes:    i.volumeDirs(),
			Entrypoint: i.Entrypoint, Cmd: i.Cmd, User: i.User, StopSignal: i.StopSignal,
		}
	}
	return images, joinSorted(errs)
}

// volumeDirs are the VOLUME directories; the file was checked.
func (i *Image) volumeDirs() []image.Dir {
	var dirs []image.Dir
	for _, path := range slices.Sorted(maps.Keys(i.Volumes)) {
		dir, _ := volumeDir(path, i.Volumes[path])
		dirs = append(dirs, dir)
	}
	return dirs
}

// volumeDir reads a VOLUME directory and its owner.
func volumeDir(path, owner string) (image.Dir, error) {
	uid, gid, _ := strings.Cut(owner, ":")
	u, uErr := strconv.ParseUint(uid, 10, 31)
	g, gErr := strconv.ParseUint(gid, 10, 31)
	if uErr != nil || gErr != nil {
		return image.Dir{}, fmt.Errorf("%s: owner %q: want uid:gid, such as 5996:5996", path, owner)
	}
	if !filepath.IsAbs(path) {
		return image.Dir{}, fmt.Errorf("%q: want an absolute path", path)
	}
	return image.Dir{Path: path, UID: int(u), GID: int(g)}, nil
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

// lacking is what a program needs and this machine does not have.
func lacking(r *image.Resolver, program image.Bind) error {
	_, err := r.Libraries(program)
	return err
}

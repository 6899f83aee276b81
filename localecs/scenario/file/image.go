package file

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Image is the programs that a container of an image sees, and the image's
// defaults. Nothing else of this machine is visible inside.
type Image struct {
	// Programs are those of the host. ${name} stands for a variable: consul, envoy, bin (the project's programs).
	Programs Programs `yaml:"programs"`
	// Files are other files and directories of the host, read-only, by their path in
	// the container: an interpreter's library, certificates.
	Files map[string]string `yaml:"files"`
	// Volumes are the image's VOLUME directories, with their owner as "uid:gid":
	// a task's volume mounted there takes it over.
	Volumes    map[string]string `yaml:"volumes"`
	Entrypoint []string          `yaml:"entrypoint"`
	Cmd        []string          `yaml:"cmd"`
	// Env are NAME=value.
	Env        []string `yaml:"env"`
	WorkingDir string   `yaml:"workingDir"`
	User       string   `yaml:"user"`
	// Users are the names in its /etc/passwd, with "uid:gid". root and nobody are always known.
	Users      map[string]string `yaml:"users"`
	StopSignal string            `yaml:"stopSignal"`
}

// Programs are host programs by their path in the container, or a list of words as the flag -image takes them: names
// on PATH, paths and directories, or host, which is everything that this machine has installed.
type Programs struct {
	Paths map[string]string `yaml:"-"`
	Words []string          `yaml:"-"`
	// Flag: the words are those of -image, whose relative paths begin at the working directory.
	Flag bool `yaml:"-"`
}

// UnmarshalYAML takes the mapping, a list of words, or words with commas between them.
func (p *Programs) UnmarshalYAML(unmarshal func(any) error) error {
	var value any
	if err := unmarshal(&value); err != nil {
		return err
	}
	switch value := value.(type) {
	case string:
		p.Words = strings.Split(value, ",")
		return nil
	case []any:
		return unmarshal(&p.Words)
	}
	return unmarshal(&p.Paths)
}

func (p Programs) problems() (errs []error) {
	if err := CheckWords(p.Words); err != nil {
		errs = append(errs, fmt.Errorf("programs: %w", err))
	}
	for path := range p.Paths {
		if !filepath.IsAbs(path) {
			errs = append(errs, fmt.Errorf("programs: %q: want an absolute path of the container, or a list of "+
				"programs in place of the mapping", path))
		}
	}
	return errs
}

// Problems returns the mistakes, each behind its key.
func (i *Image) Problems() (errs []error) {
	errs = i.Programs.problems()
	for path, owner := range i.Volumes {
		if _, err := volumeDir(path, owner); err != nil {
			errs = append(errs, fmt.Errorf("volumes: %w", err))
		}
	}
	for _, pair := range i.Env {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" {
			errs = append(errs, fmt.Errorf("env: %q: want NAME=value", pair))
		}
	}
	return errs
}

// Host returns the image of that name on this machine, without Problems. Relative paths begin at dir.
// What is not here, or lacks something, is in errs.
func (i *Image) Host(name, dir string, vars map[string]string, resolver *runtime.Resolver) (of runtime.Image,
	errs []error) {
	of = runtime.Image{
		Name: name, Programs: map[string]string{}, Files: map[string]string{}, Env: i.Env,
		Entrypoint: i.Entrypoint, Cmd: i.Cmd, WorkingDir: i.WorkingDir, User: i.User, Users: i.Users,
		StopSignal: i.StopSignal,
	}
	for _, err := range i.Programs.addWords(&of, dir, vars, resolver) {
		if i.Programs.Flag {
			errs = append(errs, fmt.Errorf("-image %s: %w", name, err))
		} else {
			errs = append(errs, fmt.Errorf("images[%q].programs: %w", name, err))
		}
	}
	for inside, host := range i.Programs.Paths {
		path, err := find(host, dir, vars)
		if err == nil {
			of.Programs[inside] = path
			_, err = resolver.Libraries(runtime.Bind{Source: path, Target: inside})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("images[%q].programs[%q]: %w", name, inside, err))
		}
	}
	for inside, host := range i.Files {
		path, _, err := expand(host, dir, vars)
		if err == nil {
			of.Files[inside] = path
			_, err = os.Stat(path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("images[%q].files[%q]: %w", name, inside, err))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(i.Volumes)) {
		volume, _ := volumeDir(path, i.Volumes[path])
		of.Volumes = append(of.Volumes, volume)
	}
	if err := of.Validate(); err != nil {
		errs = append(errs, err)
	}
	if _, err := of.Account(""); err != nil {
		errs = append(errs, fmt.Errorf("images[%q].user: %w; users has those of the image", name, err))
	}
	return of, errs
}

// volumeDir reads a VOLUME directory and its owner.
func volumeDir(path, owner string) (runtime.Dir, error) {
	uid, gid, _ := strings.Cut(owner, ":")
	u, uErr := strconv.ParseUint(uid, 10, 31)
	g, gErr := strconv.ParseUint(gid, 10, 31)
	if uErr != nil || gErr != nil {
		return runtime.Dir{}, fmt.Errorf("%s: owner %q: want uid:gid, such as 5996:5996", path, owner)
	}
	if !filepath.IsAbs(path) {
		return runtime.Dir{}, fmt.Errorf("%q: want an absolute path", path)
	}
	return runtime.Dir{Path: path, UID: int(u), GID: int(g)}, nil
}

// HostImages returns the scenario's images with their variables filled in. What this machine does not
// have, or what lacks something it needs, is all named in the error.
func (s *Scenario) HostImages(vars map[string]string) (runtime.Images, error) {
	images := runtime.Images{}
	var errs []error
	var resolver runtime.Resolver
	for name, i := range s.Images {
		of, missing := i.Host(name, s.Dir, vars, &resolver)
		images[name], errs = of, append(errs, missing...)
	}
	return images, joinSorted(errs)
}

// Image returns the image of that name, or the one for all images; nil without either.
func (s *Scenario) Image(name string) *Image {
	if i := s.Images[name]; i != nil {
		return i
	}
	return s.Images[runtime.AllImages]
}

// SecretTexts returns the scenario's secrets. Files that cannot be read are all named in the error.
func (s *Scenario) SecretTexts() (map[string]string, error) {
	texts := map[string]string{}
	var errs []error
	for name, secret := range s.Secrets {
		text, err := secret.text(s.inDir)
		if err != nil {
			errs = append(errs, fmt.Errorf("secrets[%q]: %w", name, err))
		}
		texts[name] = text
	}
	return texts, joinSorted(errs)
}

// EnvironmentFileTexts returns the contents of the scenario's environment files, by ARN. Files that
// cannot be read are all named in the error.
func (s *Scenario) EnvironmentFileTexts() (map[string]string, error) {
	texts := map[string]string{}
	var errs []error
	for arn, path := range s.EnvironmentFiles {
		data, err := cli.ReadFile(s.inDir(path), maxBytes)
		if err != nil {
			errs = append(errs, fmt.Errorf("environmentFiles[%q]: %w", arn, err))
		}
		texts[arn] = string(data)
	}
	return texts, joinSorted(errs)
}

// inDir returns a path of the scenario file: relative ones start at its directory.
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

// AWS returns the scenario's account, in its region.
func (s *Scenario) AWS() shapes.Account { return shapes.Account{Region: s.Region, ID: s.Account} }

// IdentityRoles returns the scenario's IAM roles. The key "consul-ecs/web" is role web
// with path /consul-ecs/.
func (s *Scenario) IdentityRoles() []iam.Role {
	var roles []iam.Role
	for name, r := range s.Roles {
		role := iam.RoleOf(name, s.AWS())
		role.Tags, role.Actions = r.Tags, r.Actions
		roles = append(roles, role)
	}
	return roles
}

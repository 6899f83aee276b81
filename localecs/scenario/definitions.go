package scenario

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/taskdef"
)

// SettingName is the file beside a task definition that takes the place of flags.
const SettingName = "localecs.yaml"

// Sources are what tasks need besides their definitions.
type Sources struct {
	Images Flags
	// EngineImages: a container engine has the images, so none is missing.
	EngineImages bool
	// Secrets are values by the names that cluster.Secret looks for.
	Secrets map[string]string
	// EnvironmentFiles are absolute paths by ARN.
	EnvironmentFiles map[string]string
	// Publish and Outside are added to those of Setting.
	Publish, Outside []string
	// Setting is a scenario file, or its directory, of which all is used that is not of scenarios only. Empty is
	// SettingName beside the definitions, if it exists, which has nothing else.
	Setting string
	// Vars are the variables of its images.
	Vars    map[string]string
	Network network.Mode
}

// definitions are a plan without a Consul server, while what it needs is collected.
type definitions struct {
	sources Sources
	plan    *Plan
}

// named takes NAME=FILE apart; the name is empty for a file alone.
func named(argument string) (name, path string) {
	name, path, ok := strings.Cut(argument, "=")
	if !ok || strings.Contains(name, "/") {
		return "", argument
	}
	return name, path
}

// IsDefinition reports whether a file, or NAME=FILE, is a task definition, and no
// scenario. A JSON file is one also when it is broken, or not there.
func IsDefinition(argument string) bool {
	_, path := named(argument)
	json := filepath.Ext(path) == ".json"
	st, err := os.Stat(path)
	if err != nil {
		return json
	}
	if !st.Mode().IsRegular() {
		return false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return json
	}
	text := strings.TrimSpace(string(data))
	if LooksLikeDefinition(data) || !json {
		return LooksLikeDefinition(data)
	}
	return !strings.Contains(text, `"tasks"`) && !strings.Contains(text, `"images"`)
}

// LooksLikeDefinition reports whether a document looks like a task definition.
func LooksLikeDefinition(data []byte) bool {
	text := strings.TrimSpace(string(data))
	return strings.HasPrefix(text, "{") &&
		(strings.Contains(text, `"containerDefinitions"`) || strings.Contains(text, `"taskDefinition"`))
}

// PrepareDefinitions reads task definitions, files or NAME=FILE, and finds
// everything that their tasks need. They run without a Consul server, all from the
// start, until all have ended. The error has all mistakes and all that is missing.
// Nothing was started or written when it returns.
func PrepareDefinitions(paths []string, s Sources) (plan *Plan, warnings []string, err error) {
	setting, err := s.setting(paths)
	if err != nil {
		return nil, nil, err
	}
	setting.Tasks = map[string]file.Task{}
	d := &definitions{sources: s, plan: &Plan{
		file: setting, network: s.Network,
		defs: file.Definitions{
			Files: map[string]*taskdef.TaskDefinition{}, Tasks: map[string]*taskdef.TaskDefinition{},
		},
	}}
	warnings, err = d.read(paths)
	if err != nil {
		return nil, warnings, err
	}
	d.plan.file.Name = strings.Join(d.plan.alone, "+")
	d.locate()
	d.findRoles()
	more, err := d.findImages()
	warnings = append(warnings, more...)
	secrets, secretErr := d.plan.file.SecretTexts()
	d.plan.secrets = merged(secrets, s.Secrets)
	d.plan.file.EnvironmentFiles = merged(d.plan.file.EnvironmentFiles, s.EnvironmentFiles)
	d.plan.file.Publish = append(d.plan.file.Publish, s.Publish...)
	d.plan.file.Outside = append(d.plan.file.Outside, s.Outside...)
	var fileErr error
	d.plan.environmentFiles, fileErr = d.plan.file.EnvironmentFileTexts()
	err = errors.Join(s.Network.CheckSubnet(d.plan.file.Subnet), err, secretErr, fileErr, d.plan.connect(), d.missing())
	if err != nil {
		return nil, warnings, err
	}
	return d.plan, warnings, nil
}

// merged returns the values of both maps; those of b win.
func merged(a, b map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// setting loads the file with everything else.
func (s Sources) setting(paths []string) (*file.Scenario, error) {
	path := s.Setting
	if path == "" {
		for _, argument := range paths {
			_, definition := named(argument)
			beside := filepath.Join(filepath.Dir(definition), SettingName)
			if _, err := os.Stat(beside); err != nil || beside == path {
				continue
			}
			if path != "" {
				return nil, fmt.Errorf("there is a %s and a %s: choose one with -images", path, beside)
			}
			path = beside
		}
	}
	setting, err := file.LoadSetting(path)
	if err != nil {
		return nil, err
	}
	if dropped := setting.Reduce(); len(dropped) > 0 && s.Setting == "" {
		return nil, fmt.Errorf("%s: %s: only scenarios have this: localecs run takes them as DIR/%s", path,
			strings.Join(dropped, ", "), file.FileName)
	}
	if s.Network == network.Host && setting.Subnet == file.Default().Subnet { // which is for the other
		setting.Subnet = "127.42.0.0/24"
	}
	return setting, nil
}

// read reads the definitions and names their tasks.
func (d *definitions) read(paths []string) (warnings []string, err error) {
	var errs []error
	count := map[string]int{}
	warned := map[string]bool{}
	for _, argument := range paths {
		name, path := named(argument)
		def, more, err := runtime.Load(path)
		if !warned[path] {
			warnings = append(warnings, more...)
		}
		warned[path] = true
		if err != nil {
			errs = append(errs, err)
			continue
		}
		switch {
		case name == "":
			name = def.Family
		case !file.NamesDirectory(name):
			errs = append(errs, fmt.Errorf("%q: want letters, digits, _ . and -: it is the name of a directory", name))
		}
		if count[name]++; count[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, count[name])
		}
		d.plan.file.Tasks[name] = file.Task{Definition: path}
		d.plan.defs.Files[path], d.plan.defs.Tasks[name] = def, def
		d.plan.alone = append(d.plan.alone, name)
	}
	return warnings, errors.Join(errs...)
}

// locate takes account and region from the definitions where the settings have
// none: containers see their own.
func (d *definitions) locate() {
	usual := file.Default()
	for _, name := range d.plan.alone {
		def := d.plan.defs.Tasks[name]
		for _, arn := range []string{def.TaskRoleARN, def.ExecutionRoleARN} {
			if parts := strings.Split(arn, ":"); len(parts) == 6 && d.plan.file.Account == usual.Account {
				d.plan.file.Account = parts[4]
			}
		}
		for _, c := range def.ContainerDefinitions {
			if c.LogConfiguration == nil || d.plan.file.Region != usual.Region {
				continue
			}
			if region := c.LogConfiguration.Options["awslogs-region"]; region != "" {
				d.plan.file.Region = region
			}
		}
	}
}

// findRoles makes the tasks' roles: those of the settings, and ones without tags or
// actions for the rest.
func (d *definitions) findRoles() {
	d.plan.roles = d.plan.file.IdentityRoles()
	for _, name := range d.plan.alone {
		def := d.plan.defs.Tasks[name]
		if def.TaskRoleARN == "" {
			continue
		}
		role := iam.RoleOf(def.TaskRoleARN, d.plan.file.AWS())
		def.TaskRoleARN = role.ARN()
		if !slices.ContainsFunc(d.plan.roles, func(r iam.Role) bool { return r.ARN() == role.ARN() }) {
			d.plan.roles = append(d.plan.roles, role)
		}
	}
}

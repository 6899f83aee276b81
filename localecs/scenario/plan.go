package scenario

import (
	"errors"
	"fmt"
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

// SettingName is the file beside a task definition that says what the flags would.
const SettingName = "localecs.yaml"

// Sources say what the tasks of some definitions need besides them.
type Sources struct {
	Images Flags
	// EngineImages says that the container engine has the images: none is missing.
	EngineImages bool
	// Secrets are values by the names that environment.Secret looks for.
	Secrets map[string]string
	// EnvironmentFiles are paths by ARN.
	EnvironmentFiles map[string]string
	// Setting is a scenario file, or its directory, of which everything but tasks,
	// steps and checks counts. Empty is SettingName beside the definitions, if it is
	// there.
	Setting string
	// Vars are the variables of its images.
	Vars    map[string]string
	Network network.Mode
}

// Plan is task definitions with all that their tasks need.
type PlainPlan struct {
	setting *file.Scenario
	network network.Mode
	tasks   []plainTask
	images  map[string]runtime.Image
	roles   []iam.Role
	// environmentFiles are their texts, by ARN.
	environmentFiles map[string]string
}

// task is one to be run.
type plainTask struct {
	name, path string
	def        *taskdef.TaskDefinition
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

// Looks reports whether a document looks like a task definition.
func LooksLikeDefinition(data []byte) bool {
	text := strings.TrimSpace(string(data))
	return strings.HasPrefix(text, "{") && (strings.Contains(text, `"containerDefinitions"`) || strings.Contains(text, `"taskDefinition"`))
}

// Prepare reads the definitions, files or NAME=FILE, and finds everything that their tasks need. The
// error has all that is wrong with or missing for all of them; the warnings are for
// people to read. Nothing was started or written when it returns.
func PreparePlain(paths []string, s Sources) (plan *PlainPlan, warnings []string, err error) {
	setting, err := s.setting(paths)
	if err != nil {
		return nil, nil, err
	}
	p := &PlainPlan{setting: setting, network: s.Network}
	warnings, err = p.read(paths)
	if err != nil {
		return nil, warnings, err
	}
	p.locate()
	p.findRoles()
	more, err := p.findImages(s)
	fileErr := p.findFiles(s)
	for name, value := range s.Secrets {
		if setting.Secrets == nil {
			setting.Secrets = map[string]string{}
		}
		setting.Secrets[name] = value
	}
	missing := p.missing(s)
	if err := errors.Join(s.Network.CheckSubnet(setting.Subnet), err, fileErr, missing); err != nil {
		return nil, append(warnings, more...), err
	}
	return p, append(warnings, more...), nil
}

// Name is that of the tasks' logs: the family, or all of them.
func (p *PlainPlan) Name() string { return strings.Join(p.Tasks(), "+") }

// Tasks are the tasks' names, in the order of the command line.
func (p *PlainPlan) Tasks() []string {
	var names []string
	for _, t := range p.tasks {
		names = append(names, t.name)
	}
	return names
}

// setting is the file with everything else.
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
				return nil, fmt.Errorf("there is a %s and a %s: say with -images which one counts", path, beside)
			}
			path = beside
		}
	}
	setting := file.Default()
	if path != "" {
		var err error
		if setting, err = file.LoadSetting(path); err != nil {
			return nil, err
		}
	}
	if s.Network == network.Host && setting.Subnet == file.Default().Subnet { // which is for the other
		setting.Subnet = "127.42.0.0/24"
	}
	return setting, nil
}

// read reads the definitions and names their tasks.
func (p *PlainPlan) read(paths []string) (warnings []string, err error) {
	var errs []error
	count := map[string]int{}
	told := map[string]bool{}
	for _, argument := range paths {
		name, path := named(argument)
		def, more, err := runtime.Load(path)
		if !told[path] {
			warnings = append(warnings, more...)
		}
		told[path] = true
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
		p.tasks = append(p.tasks, plainTask{name: name, path: path, def: def})
	}
	return warnings, errors.Join(errs...)
}

// locate takes account and region from the definitions where the setting does not
// say: containers shall see their own.
func (p *PlainPlan) locate() {
	usual := file.Default()
	for _, t := range p.tasks {
		for _, arn := range []string{t.def.TaskRoleARN, t.def.ExecutionRoleARN} {
			if parts := strings.Split(arn, ":"); len(parts) == 6 && p.setting.Account == usual.Account {
				p.setting.Account = parts[4]
			}
		}
		for _, c := range t.def.ContainerDefinitions {
			if c.LogConfiguration == nil || p.setting.Region != usual.Region {
				continue
			}
			if region := c.LogConfiguration.Options["awslogs-region"]; region != "" {
				p.setting.Region = region
			}
		}
	}
}

// findRoles makes the tasks' roles: those of the setting, and plain ones for the
// rest.
func (p *PlainPlan) findRoles() {
	p.roles = p.setting.IdentityRoles()
	for _, t := range p.tasks {
		if t.def.TaskRoleARN == "" {
			continue
		}
		role := iam.RoleOf(t.def.TaskRoleARN, p.setting.AWS())
		t.def.TaskRoleARN = role.ARN()
		if !slices.ContainsFunc(p.roles, func(r iam.Role) bool { return r.ARN() == role.ARN() }) {
			p.roles = append(p.roles, role)
		}
	}
}

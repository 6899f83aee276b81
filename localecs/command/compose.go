package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/localecs/compose"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/taskdef"
)

// composeFlags are the flags of `localecs compose`.
type composeFlags struct {
	output, setting string
	startInterval   bool
}

func composeCommand() cli.Command {
	f := &composeFlags{}
	return cli.Command{
		Synopsis: "Write a docker compose file from task definitions",
		Usage:    "compose [flags] [NAME=]FILE...",
		Help: `
Writes a file with which docker compose runs tasks of these definitions, each named by
its family or by NAME; a file may be given several times with different names. Settings
that compose cannot express are reported by warnings, and in a comment of the file.

A task becomes a service of its name, which only holds the task's network and address,
and a service NAME-CONTAINER for each container in that network. The service endpoints,
localecs endpoints, serves them task metadata, credentials, task protection, STS, IAM,
and the operations of the ECS API that read tasks. When an essential container exits, it
stops the task's other containers.

Images are replaced by variables, such as CONSUL_IMAGE for hashicorp/consul:1.20.1, and
LOCALECS_IMAGE for localecs; values of secrets are variables of the secrets' names. Ports
are not published, and there is no Consul server: put these, and dependencies of tasks,
into a second compose file. DOCKER_SOCKET is the engine's socket; CONSUL_HTTP_ADDR and
CONSUL_HTTP_TOKEN select a Consul server whose auth methods get the addresses of STS and
IAM.

All such projects use 169.254.170.2 in one network of the engine, so only one can run at
a time. It needs docker-compose 1.29 or any docker compose.

Exit status: 0 done; 1 usage or a definition that ECS would refuse.

Example:
  $ localecs compose -o compose.yaml -setting scenario.yaml web.json api-1=api.json api-2=api.json
  $ docker compose up`,
		FlagsAnywhere: true,
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&f.output, "o", "", "`file` to write (default stdout); paths in it are relative to its directory")
			fs.StringVar(&f.setting, "setting", "", "scenario `directory or file` with account, region, cluster and roles; containers can read it")
			fs.BoolVar(&f.startInterval, "start-interval", true, "check health in start periods by the regular interval, as ECS does; docker-compose 1 and engines before 25.0 always do so, and refuse files with this setting")
		},
		Run: f.run,
	}
}

func (f *composeFlags) run(_ context.Context, inv *cli.Invocation) error {
	options, warnings, err := f.read(inv.Args)
	if err != nil {
		return &exit.UsageError{Err: err}
	}
	made, err := compose.NewFile(options)
	if err != nil {
		return &exit.UsageError{Err: err}
	}
	for _, w := range append(warnings, made.Warnings...) {
		fmt.Fprintln(inv.Stderr, "localecs compose: warning: "+w)
	}
	text, err := made.YAML(f.header(inv.Args))
	if err != nil {
		return err
	}
	if f.output == "" {
		_, err = inv.Stdout.Write(text)
		return err
	}
	return cli.WriteFile(f.output, text)
}

// header returns the comment with the command line.
func (f *composeFlags) header(args []string) string {
	line := "Made by: localecs compose"
	if f.output != "" {
		line += " -o " + f.output
	}
	if f.setting != "" {
		line += " -setting " + f.setting
	}
	if !f.startInterval {
		line += " -start-interval=false"
	}
	return line + " " + strings.Join(args, " ") + `
Generate it again when a task definition changes; put other settings into another file.`
}

// read reads the arguments. The error has the mistakes of all of them.
func (f *composeFlags) read(args []string) (o compose.Options, warnings []string, err error) {
	if len(args) == 0 {
		return o, nil, errors.New("name a task definition: localecs compose FILE")
	}
	path, err := settingFile(f.setting)
	errs := []error{err}
	setting, err := file.LoadSetting(path)
	errs = append(errs, err)
	o.Setting, err = f.relative(path)
	errs = append(errs, err)
	if setting != nil {
		o.Region = setting.Region
	}
	o.StartInterval = f.startInterval
	tasks, warnings, err := namedTasks(args)
	errs = append(errs, err)
	for _, t := range tasks {
		path, err := f.relative(t.Path)
		errs = append(errs, err)
		o.Tasks = append(o.Tasks, compose.FileTask{Name: t.Name, Path: path, Definition: t.Definition})
	}
	return o, warnings, errors.Join(errs...)
}

// settingFile returns the setting as a file, which a container can mount.
func settingFile(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	st, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("-setting: %w", err)
	}
	if st.IsDir() {
		path = filepath.Join(path, file.FileName)
	}
	return path, nil
}

// relative returns a path relative to the output's directory. Both are made absolute first, because
// filepath.Rel cannot relate a relative path to an absolute one, or to one above the working directory.
func (f *composeFlags) relative(path string) (string, error) {
	if filepath.IsAbs(path) || path == "" {
		return path, nil
	}
	from, err := filepath.Abs(filepath.Dir(f.output))
	if err != nil {
		return "", fmt.Errorf("-o: %w", err)
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// namedTasks loads the definitions of arguments [NAME=]FILE. A file that is given twice is read, and
// its errors are reported, once.
func namedTasks(args []string) (tasks []compose.FileTask, warnings []string, err error) {
	var errs []error
	loaded := map[string]*taskdef.TaskDefinition{}
	for _, arg := range args {
		name, path, named := strings.Cut(arg, "=")
		if !named {
			name, path = "", arg
		}
		if _, known := loaded[path]; !known {
			def, notes, err := runtime.Read(path)
			if err != nil {
				def, errs = nil, append(errs, err)
			}
			loaded[path], warnings = def, append(warnings, notes...)
		}
		def := loaded[path]
		if def == nil {
			continue
		}
		if !named {
			name = def.Family
		}
		if slices.ContainsFunc(tasks, func(t compose.FileTask) bool { return t.Name == name }) {
			errs = append(errs, fmt.Errorf("%s: there are two tasks %s; name them, NAME=FILE", path, name))
			continue
		}
		tasks = append(tasks, compose.FileTask{Name: name, Path: path, Definition: def})
	}
	return tasks, warnings, errors.Join(errs...)
}

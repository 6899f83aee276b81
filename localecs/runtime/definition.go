package runtime

import (
	"errors"
	"fmt"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/taskdef"
)

// maxBytes bounds a task definition file. ECS takes 64 KiB, in its own
// spelling of the document.
const maxBytes = 1 << 20

// Load reads and validates a task definition file that localecs is to run.
// Everything that is wrong is in the error; the warnings are for users to read,
// Unfaithful's among them.
func Load(path string) (def *taskdef.TaskDefinition, warnings []string, err error) {
	def, warnings, err = Read(path)
	if def != nil {
		for _, u := range Unfaithful(def) {
			warnings = append(warnings, path+": "+u)
		}
	}
	return def, warnings, err
}

// Read reads and validates a task definition file, for localecs or another program.
func Read(path string) (def *taskdef.TaskDefinition, warnings []string, err error) {
	data, err := cli.ReadFile(path, maxBytes)
	if err != nil {
		return nil, nil, fmt.Errorf("read task definition: %w", err)
	}
	doc, err := taskdef.Parse(data)
	if err != nil {
		return nil, nil, fmt.Errorf("task definition %s: %w", path, err)
	}
	for _, w := range doc.Warnings {
		warnings = append(warnings, path+": "+w.String())
	}
	var errs []error
	for _, v := range doc.Validate() {
		if v.Severity == taskdef.Error {
			errs = append(errs, fmt.Errorf("task definition %s: %s", path, v))
		} else {
			warnings = append(warnings, path+": "+v.String())
		}
	}
	return doc.Definition, warnings, errors.Join(errs...)
}

package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// ignoreVariable names the containers that the mesh does not wait for at the end.
const ignoreVariable = "CONSUL_ECS_IGNORE_CONTAINERS"

// ignoreList are containers of the mesh file that are no applications when a task ends.
type ignoreList []string

// UnmarshalJSON reads a list of names, each of which may end in *. The error has all that is
// wrong with it.
func (l *ignoreList) UnmarshalJSON(text []byte) error {
	var names []string
	if err := json.Unmarshal(text, &names); err != nil {
		return errors.New("ignoreContainers: want a list of names")
	}
	var mistakes []string
	for _, name := range names {
		if !taskdef.ValidName(strings.TrimSuffix(name, "*")) {
			mistakes = append(mistakes, fmt.Sprintf("%q", name))
		}
	}
	if len(mistakes) > 0 {
		return fmt.Errorf("ignoreContainers: %s: want names of containers, or the beginning of one and a * at its end",
			strings.Join(mistakes, ", "))
	}
	*l = names
	return nil
}

// ignoring sets which other containers are not applications for a container.
func (b sidecarBuilder) ignoring(c *taskdef.Container) *taskdef.Container {
	apps := map[int]bool{}
	for _, i := range b.containers.applications() {
		apps[i] = true
	}
	var names []string
	for i, other := range b.doc.Definition.ContainerDefinitions {
		if other.Name != "" && !workload.IsMeshContainer(other.Name) && !apps[i] {
			names = append(names, other.Name)
		}
	}
	if names = slices.Concat(names, b.mesh.settings.IgnoreContainers); len(names) > 0 {
		c.Environment = append(c.Environment, taskdef.KeyValue{Name: ignoreVariable, Value: strings.Join(names, ",")})
	}
	return c
}

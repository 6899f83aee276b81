package admission

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// Mesh is a mesh file: the configuration that all tasks share, as
// CONSUL_ECS_CONFIG_JSON has it, with the settings of admission beside it.
type Mesh struct {
	configuration *taskdef.Node
	settings      settings
}

// settings are the member admission of a mesh file.
type settings struct {
	Images images `json:"images"`
	// Resources are by container of the mesh, under its name.
	Resources map[string]share `json:"resources"`
	// EnvoyConcurrency is how many worker threads Envoy has, 0 for defaultConcurrency.
	EnvoyConcurrency int `json:"envoyConcurrency"`
	// Client is for tasks with an agent.
	Client client `json:"client"`
	// Secrets become environment variables of the injected containers, such as
	// CONSUL_HTTPS_CACERT_PEM.
	Secrets []taskdef.Secret `json:"secrets"`
	// OperatorToken is the token of the one who submits definitions. It becomes part of
	// none.
	OperatorToken secret.Value `json:"operatorToken"`
	// LogConfiguration is the injected containers'; that of the application when absent.
	LogConfiguration *taskdef.Node `json:"-"`
}

type images struct {
	ConsulECS string `json:"consulECS"`
	Envoy     string `json:"envoy"`
	Dataplane string `json:"dataplane"`
	Consul    string `json:"consul"`
}

// share replaces what a container has otherwise: nothing, or 32 or 128 MiB of
// MemoryReservation when the task has no memory itself.
type share struct {
	CPU               *int `json:"cpu"`
	Memory            *int `json:"memory"`
	MemoryReservation *int `json:"memoryReservation"`
}

type client struct {
	RetryJoin     []string `json:"retryJoin"`
	Datacenter    string   `json:"datacenter"`
	Configuration string   `json:"configuration"`
	// Secrets are those that no other container needs, such as the key of gossip.
	Secrets []taskdef.Secret `json:"secrets"`
}

// Images of the injected containers, unless the mesh file has others.
const (
	defaultConsulECS = "meshtask/consul-ecs:0.7.0"
	defaultEnvoy     = "envoyproxy/envoy:v1.40.0"
	defaultDataplane = "hashicorp/consul-dataplane:1.9.0"
	defaultConsul    = "hashicorp/consul:1.20.1"
)

// ParseMesh reads a mesh file. The configuration in it is checked when it is joined
// with a task.
func ParseMesh(doc []byte) (*Mesh, error) {
	if err := taskdef.CheckText(doc); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(doc, new(json.RawMessage)); err != nil {
		return nil, fmt.Errorf("the mesh file is not JSON: %w", err)
	}
	root := taskdef.NewNode(json.RawMessage(doc))
	if !root.IsObject() {
		return nil, errors.New("the mesh file is not a JSON object")
	}
	m := &Mesh{configuration: root}
	admission := root.Get("admission")
	root.Delete("admission")
	if admission == nil {
		return m, nil
	}
	if logs := admission.Get("logConfiguration"); !logs.IsNull() {
		m.settings.LogConfiguration = logs
	}
	admission.Delete("logConfiguration")
	dec := json.NewDecoder(bytes.NewReader(admission.JSON()))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m.settings); err != nil {
		return nil, settingsError(err)
	}
	if err := m.settings.check(admission.Get("envoyConcurrency") != nil); err != nil {
		return nil, err
	}
	return m, nil
}

// check reports the first setting that no task can have. Concurrency reports whether the file
// has the member.
func (s settings) check(concurrency bool) error {
	if n := s.EnvoyConcurrency; concurrency && (n < 1 || n > maxConcurrency) {
		return fmt.Errorf("the member admission.envoyConcurrency of the mesh file: is %d, want 1 to %d", n, maxConcurrency)
	}
	for name, r := range s.Resources {
		if !workload.Owned(name) {
			return fmt.Errorf("the member admission.resources of the mesh file: %q is not a container of the mesh, such as %s", name, workload.ContainerSidecarProxy)
		}
		for _, n := range []*int{r.CPU, r.Memory, r.MemoryReservation} {
			if n != nil && *n < 0 {
				return fmt.Errorf("the member admission.resources of the mesh file: %s has %d: want 0 or more", name, *n)
			}
		}
	}
	return nil
}

// settingsError names the member of the mesh file that has a wrong type.
func settingsError(err error) error {
	wrong, is := errors.AsType[*json.UnmarshalTypeError](err)
	if !is {
		return fmt.Errorf("the member admission of the mesh file: %w", err)
	}
	want, known := map[reflect.Kind]string{reflect.Int: "an integer", reflect.Slice: "a list", reflect.Map: "an object"}[wrong.Type.Kind()]
	switch {
	case known:
	case wrong.Type.Kind() == reflect.String || wrong.Type == reflect.TypeFor[secret.Value]():
		want = "a string"
	default:
		want = "an object"
	}
	return fmt.Errorf("the member %s of the mesh file: must be %s, but is a JSON %s", strings.TrimSuffix("admission."+wrong.Field, "."), want, wrong.Value)
}

// OperatorToken is the token of the member admission, empty without one.
func (m *Mesh) OperatorToken() secret.Value { return m.settings.OperatorToken }

func (i images) withDefaults() images {
	return images{
		ConsulECS: cmp.Or(i.ConsulECS, defaultConsulECS),
		Envoy:     cmp.Or(i.Envoy, defaultEnvoy),
		Dataplane: cmp.Or(i.Dataplane, defaultDataplane),
		Consul:    cmp.Or(i.Consul, defaultConsul),
	}
}

package admission

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/taskdef"
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
	// Sidecars are by role, see sidecarRoles.
	Sidecars map[string]Sidecar `json:"sidecars"`
	// EnvoyConcurrency is how many worker threads Envoy has, 0 for defaultConcurrency.
	EnvoyConcurrency int `json:"envoyConcurrency"`
	// IgnoreContainers need not end before the mesh.
	IgnoreContainers ignoreList `json:"ignoreContainers"`
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

type client struct {
	RetryJoin     []string `json:"retryJoin"`
	Datacenter    string   `json:"datacenter"`
	Configuration string   `json:"configuration"`
	// Secrets are those that no other container needs, such as the key of gossip.
	Secrets []taskdef.Secret `json:"secrets"`
}

// Images of the injected containers, unless the mesh file has others. That of consul-ecs is in Options.
const (
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
	if err := checkMeshNames(root); err != nil {
		return nil, err
	}
	m := &Mesh{configuration: root}
	admission := root.Get(meshMember)
	root.Delete(meshMember)
	if admission == nil {
		return m, nil
	}
	if admission.Get("resources") != nil {
		return nil, errors.New(`the member admission.resources of the mesh file: use sidecars, by role, such as ` +
			`{"proxy": {"cpu": 128, "memory": 256}}`)
	}
	if logs := admission.Get("logConfiguration"); logs != nil && !logs.IsNull() {
		if !logs.IsObject() {
			return nil, wrongSetting(logs, "an object", meshMember+".logConfiguration")
		}
		m.settings.LogConfiguration = logs
	}
	admission.Delete("logConfiguration")
	if err := checkSettings(admission, reflect.TypeFor[settings](), meshMember); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(admission.JSON(), &m.settings); err != nil {
		return nil, fmt.Errorf("the member %s of the mesh file: %w", meshMember, err)
	}
	if err := m.settings.check(admission.Get("envoyConcurrency") != nil); err != nil {
		return nil, err
	}
	return m, nil
}

// OperatorToken returns the token of the member admission, empty without one.
func (m *Mesh) OperatorToken() secret.Value { return m.settings.OperatorToken }

// withDefaults returns the images, where there are none the defaults: consulECS is that of consul-ecs.
func (i images) withDefaults(consulECS string) images {
	return images{
		ConsulECS: cmp.Or(i.ConsulECS, consulECS),
		Envoy:     cmp.Or(i.Envoy, defaultEnvoy),
		Dataplane: cmp.Or(i.Dataplane, defaultDataplane),
		Consul:    cmp.Or(i.Consul, defaultConsul),
	}
}

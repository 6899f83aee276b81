package localecs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/endpoints/identity"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/taskdef"
)

// environment is a container's environment by name. Later writers win, so the
// order of the calls is ECS's precedence (spec/ecs-semantics.md section 4).
type environment map[string]string

// list is the environment in a stable order, as exec takes it.
func (e environment) list() []string {
	list := make([]string, 0, len(e))
	for name, value := range e {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// image adds an image's ENV, a list of NAME=value.
func (e environment) image(env []string) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		e[name] = value
	}
}

// definition adds what the task definition says: plain values, then secrets.
func (e environment) definition(c taskdef.Container, secret func(valueFrom string) (string, bool)) error {
	for _, kv := range c.Environment {
		e[kv.Name] = kv.Value
	}
	for _, s := range c.Secrets {
		value, ok := secret(s.ValueFrom)
		if !ok {
			return fmt.Errorf("ResourceInitializationError: unable to pull secrets: container %s, secret %s: no value for %s; add it to the scenario's secrets", c.Name, s.Name, s.ValueFrom)
		}
		e[s.Name] = value
	}
	return nil
}

// agent adds what the ECS agent sets, over the user's own. credentialsID is
// empty for a task without a role.
func (e environment) agent(endpointID, credentialsID, region, hostname string) {
	base := "http://" + network.MetadataIP
	e["ECS_CONTAINER_METADATA_URI_V4"] = base + "/v4/" + endpointID
	e["ECS_CONTAINER_METADATA_URI"] = base + "/v3/" + endpointID
	e["ECS_AGENT_URI"] = base + "/api/" + endpointID
	e["AWS_EXECUTION_ENV"] = "AWS_ECS_FARGATE"
	e["AWS_REGION"] = region
	e["AWS_DEFAULT_REGION"] = region
	e["HOSTNAME"] = hostname
	delete(e, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
	if credentialsID != "" {
		e["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = identity.RelativeURI(credentialsID)
	}
}

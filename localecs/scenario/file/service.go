package file

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Service is an ECS service: how many tasks of which definition there are to be,
// and how they are replaced. What is not given is as ECS has it.
type Service struct {
	// Definition is the task definition's file.
	Definition string `yaml:"definition"`
	Count      int    `yaml:"count"`
	// MinimumHealthyPercent and MaximumPercent bound how many tasks there are in a
	// deployment, in percent of Count.
	MinimumHealthyPercent *int                  `yaml:"minimumHealthyPercent"`
	MaximumPercent        *int                  `yaml:"maximumPercent"`
	CircuitBreaker        shapes.CircuitBreaker `yaml:"circuitBreaker"`
	// HealthCheckGracePeriod has whole seconds.
	HealthCheckGracePeriod time.Duration     `yaml:"healthCheckGracePeriod"`
	Tags                   map[string]string `yaml:"tags"`
	// PropagateTags is TASK_DEFINITION, SERVICE or NONE.
	PropagateTags        string `yaml:"propagateTags"`
	EnableECSManagedTags bool   `yaml:"enableECSManagedTags"`
	// ServiceConnect is serviceConnectConfiguration.enabled.
	ServiceConnect bool `yaml:"serviceConnect"`
}

// Problems returns the mistakes in the values.
func (s Service) Problems() []string {
	var texts []string
	add := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	if s.Definition == "" {
		add("definition: want the task definition's file")
	}
	if s.Count < 0 {
		add("count: %d: want 0 or more", s.Count)
	}
	if p := s.MinimumHealthyPercent; p != nil && (*p < 0 || *p > 100) {
		add("minimumHealthyPercent: %d: want 0 to 100", *p)
	}
	if p := s.MaximumPercent; p != nil && (*p < 100 || *p > 200) {
		add("maximumPercent: %d: want 100 to 200", *p)
	}
	// 100 and 200 are what no key means.
	if m, h := s.MaximumPercent, s.MinimumHealthyPercent; m != nil && *m == 100 && (h == nil || *h == 100) {
		add("maximumPercent: 100: minimumHealthyPercent is 100, too, and nothing could be deployed: want more, or a " +
			"smaller minimumHealthyPercent")
	}
	if g := s.HealthCheckGracePeriod; g%time.Second != 0 {
		add("healthCheckGracePeriod: %s: want whole seconds", g)
	}
	return append(texts, checkTags(s.Tags, s.PropagateTags, "TASK_DEFINITION", "SERVICE", "NONE")...)
}

// checkTags returns the mistakes in tags, and in where others come from: propagate is empty or one of
// sources.
func checkTags(tags map[string]string, propagate string, sources ...string) []string {
	var texts []string
	if propagate != "" && !slices.Contains(sources, propagate) {
		texts = append(texts, fmt.Sprintf("propagateTags: %q: want %s", propagate, strings.Join(sources, ", ")))
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if key == "" || strings.HasPrefix(strings.ToLower(key), "aws:") {
			texts = append(texts, fmt.Sprintf("tags: %q: want a key, which does not begin with aws:", key))
		}
	}
	return texts
}

// Tags returns tags in the API's form, by key.
func Tags(tags map[string]string) []shapes.Tag {
	var list []shapes.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, shapes.Tag{Key: key, Value: tags[key]})
	}
	return list
}

// Subnet is what calls of a scenario name as the VPC's only subnet.
const Subnet = "subnet-0localecs"

// Network returns where the tasks' interfaces are.
func Network() *shapes.NetworkConfiguration {
	return &shapes.NetworkConfiguration{AWSVPC: &shapes.VPCConfiguration{Subnets: []string{Subnet}}}
}

// Input returns what CreateService takes; definition is the registered revision.
func (s Service) Input(name, cluster, definition string) shapes.ServiceInput {
	grace := int(s.HealthCheckGracePeriod / time.Second)
	in := shapes.ServiceInput{
		ServiceName: name, Cluster: cluster, TaskDefinition: definition, DesiredCount: &s.Count,
		LaunchType: shapes.Fargate,
		DeploymentConfiguration: &shapes.DeploymentConfiguration{
			CircuitBreaker: &s.CircuitBreaker, MinimumHealthyPercent: s.MinimumHealthyPercent,
			MaximumPercent: s.MaximumPercent,
		},
		HealthCheckGracePeriod: &grace, NetworkConfiguration: Network(),
		Tags: Tags(s.Tags), PropagateTags: s.PropagateTags, EnableECSManagedTags: &s.EnableECSManagedTags,
	}
	if s.ServiceConnect {
		in.ServiceConnect = &shapes.ServiceConnect{Enabled: true}
	}
	return in
}

// API is how the ECS API is that tasks call.
type API struct {
	// Throttle applies AWS's token buckets.
	Throttle bool             `yaml:"throttle"`
	Lag      controlplane.Lag `yaml:"lag"`
}

package controlplane

import (
	"regexp"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

const (
	capability  = "ecs.capability."
	agentPrefix = "com.amazonaws." + capability
)

// requiredAttributes returns what a container instance would need to have, as registration lists it:
// sorted, each once. Fargate ignores it, but descriptions show it.
func requiredAttributes(def *taskdef.TaskDefinition) []shapes.NameValue {
	names := map[string]bool{}
	need := func(when bool, list ...string) {
		for _, name := range list {
			names[name] = names[name] || when
		}
	}
	docker := func(version string) string { return agentPrefix + "docker-remote-api." + version }
	need(def.NetworkMode == "awsvpc", capability+"task-eni")
	need(def.TaskRoleARN != "", agentPrefix+"task-iam-role", docker("1.17"))
	need(def.PIDMode != "" || def.IPCMode != "", capability+"pid-ipc-namespace-sharing")
	need(def.EphemeralStorage != nil, capability+"extensible-ephemeral-storage")
	for _, v := range def.Volumes {
		need(v.EFS != nil, capability+"efs", docker("1.25"))
		need(v.Docker != nil, capability+"docker-plugin.local", docker("1.25"))
	}
	for i := range def.ContainerDefinitions {
		containerAttributes(&def.ContainerDefinitions[i], def.ExecutionRoleARN != "", docker, need)
	}
	out := []shapes.NameValue{}
	for name, needed := range names {
		if needed {
			out = append(out, shapes.NameValue{Name: name})
		}
	}
	slices.SortFunc(out, func(a, b shapes.NameValue) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func containerAttributes(c *taskdef.Container, executionRole bool, docker func(string) string,
	need func(bool, ...string)) {
	need(true, docker("1.18"))
	need(c.MemoryReservation != nil, docker("1.21"))
	need(c.HealthCheck.Enabled(), capability+"container-health-check", docker("1.24"))
	need(len(c.DependsOn) > 0, capability+"container-ordering")
	need(len(c.EnvironmentFiles) > 0, capability+"env-files.s3")
	need(c.RestartPolicy != nil, capability+"container-restart-policy")
	if f := c.FirelensConfiguration; f != nil {
		need(true, capability+"firelens."+f.Type)
	}
	if l := c.LinuxParameters; l != nil {
		need(l.InitProcessEnabled != nil, docker("1.25"))
		need(l.SharedMemorySize != nil || len(l.Tmpfs) > 0, docker("1.22"))
	}
	if l := c.LogConfiguration; l != nil {
		need(true, agentPrefix+"logging-driver."+l.LogDriver)
		need(l.LogDriver == "awslogs", docker("1.19"))
		need(l.LogDriver == "awslogs" && executionRole, capability+"execution-role-awslogs")
	}
	if regexp.MustCompile(`^\d{12}\.dkr\.ecr\.`).MatchString(c.Image) {
		need(true, agentPrefix+"ecr-auth", docker("1.19"))
		need(executionRole, capability+"execution-role-ecr-pull")
	}
	for _, s := range c.Secrets {
		manager := strings.Contains(s.ValueFrom, ":secretsmanager:")
		need(manager, capability+"secrets.asm.environment-variables")
		need(!manager, capability+"secrets.ssm.environment-variables")
	}
}

// compatibilities returns the launch types that take the definition: EC2 all that can be registered,
// Fargate those that its own rules accept.
func compatibilities(def *taskdef.TaskDefinition) []string {
	onFargate := *def
	onFargate.RequiresCompatibilities = []string{shapes.Fargate}
	if def.IsFargate() || refusal(onFargate.Validate()) == "" {
		return []string{"EC2", shapes.Fargate}
	}
	return []string{"EC2"}
}

package taskdef

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// networkRules are those of section 6.3 that hold for awsvpc everywhere.
func networkRules() []Rule {
	return []Rule{
		each("host-port", func(d *TaskDefinition, c *Container, report Report) {
			for i, p := range c.PortMappings {
				if d.NetworkMode == "awsvpc" && p.HostPort != nil && p.ContainerPort != nil && *p.HostPort != *p.ContainerPort {
					report(fmt.Sprintf(".portMappings[%d].hostPort", i),
						"When networkMode=awsvpc, the host ports and container ports in port mappings must match.")
				}
			}
		}),
		each("port-mapping", func(_ *TaskDefinition, c *Container, report Report) {
			for i, p := range c.PortMappings {
				path := fmt.Sprintf(".portMappings[%d]", i)
				oneOf(report, path+".protocol", p.Protocol, "", "tcp", "udp")
				if outside(p.ContainerPort, 0, 65535) || outside(p.HostPort, 0, 65535) {
					report(path, "Ports must be between 0 and 65535.")
				}
			}
		}),
		each("awsvpc-setting", func(d *TaskDefinition, c *Container, report Report) {
			if d.NetworkMode != "awsvpc" {
				return
			}
			for _, s := range []struct {
				key, name string
				set       bool
			}{
				{".links", "Links are", len(c.Links) > 0},
				{".dnsServers", "DNS servers are", len(c.DNSServers) > 0},
				{".dnsSearchDomains", "DNS search domains are", len(c.DNSSearchDomains) > 0},
				{".hostname", "Hostname is", c.Hostname != ""},
				{".extraHosts", "Extra hosts are", len(c.ExtraHosts) > 0},
			} {
				if s.set {
					report(s.key, "%s not supported when networkMode=awsvpc", s.name)
				}
			}
		}),
	}
}

// fargateRules are the rest of section 6.3.
func fargateRules() []Rule {
	rules := []Rule{
		task("fargate-network-mode", func(d *TaskDefinition, report Report) {
			if d.NetworkMode != "awsvpc" {
				report("$.networkMode", "Fargate only supports network mode ‘awsvpc’.")
			}
		}),
		task("fargate-size", checkFargateSize),
		task("fargate-task-setting", checkFargateTask),
		each("fargate-container-setting", checkFargateContainer),
		each("fargate-timeout", func(_ *TaskDefinition, c *Container, report Report) {
			for _, t := range []struct {
				key, name string
				value     *int
			}{{".startTimeout", "start", c.StartTimeout}, {".stopTimeout", "stop", c.StopTimeout}} {
				if t.value != nil && *t.value > 120 {
					report(t.key, "Tasks using the Fargate launch type must have a container %s timeout of less than 120 seconds.", t.name)
				}
			}
		}),
		each("fargate-log-driver", func(_ *TaskDefinition, c *Container, report Report) {
			if l := c.LogConfiguration; l != nil && l.LogDriver != "" {
				oneOf(report, ".logConfiguration.logDriver", l.LogDriver, "awslogs", "splunk", "awsfirelens")
			}
		}),
		each("fargate-execution-role", checkExecutionRole),
	}
	for i := range rules {
		rules[i] = onFargate(rules[i])
	}
	return rules
}

func checkFargateSize(d *TaskDefinition, report Report) {
	if d.CPU == "" {
		report("$.cpu", "Fargate requires that 'cpu' be defined at the task level.")
	}
	if d.Memory == "" {
		report("$.memory", "Fargate requires that 'memory' be defined at the task level.")
	}
	cpu, okCPU := d.CPUUnits()
	memory, okMemory := d.MemoryMiB()
	if !okCPU || !okMemory {
		return
	}
	valid := FargateMemory(cpu)
	switch {
	case slices.Contains(valid, memory):
	case valid == nil:
		report("$.cpu", "No Fargate configuration exists for given values: %d CPU, %d memory. Valid CPU: 256, 512, 1024, 2048, 4096, 8192, 16384.", cpu, memory)
	default:
		report("$.memory", "No Fargate configuration exists for given values: %d CPU, %d memory. Valid memory for this CPU: %s.",
			cpu, memory, strings.Trim(fmt.Sprint(valid), "[]"))
	}
}

// FargateMemory returns the memory values in MiB that go with a cpu value on
// Fargate, smallest first; nil for a cpu value that Fargate does not have.
func FargateMemory(cpu int) []int {
	steps := func(low, high, step int) []int {
		var values []int
		for v := low; v <= high; v += step {
			values = append(values, v)
		}
		return values
	}
	switch cpu {
	case 256:
		return []int{512, 1024, 2048}
	case 512:
		return steps(1024, 4096, 1024)
	case 1024:
		return steps(2048, 8192, 1024)
	case 2048:
		return steps(4096, 16384, 1024)
	case 4096:
		return steps(8192, 30720, 1024)
	case 8192:
		return steps(16384, 61440, 4096)
	case 16384:
		return steps(32768, 122880, 8192)
	default:
		return nil
	}
}

func checkFargateTask(d *TaskDefinition, report Report) {
	if d.PIDMode != "" && d.PIDMode != "task" {
		report("$.pidMode", "Tasks using the Fargate launch type do not support pidMode '%s'. The supported value for pidMode is 'task'.", d.PIDMode)
	}
	if d.IPCMode != "" {
		report("$.ipcMode", "Fargate does not support the 'ipcMode' setting")
	}
	if len(d.PlacementConstraints) > 0 {
		report("$.placementConstraints", "Fargate does not support the 'placementConstraints' setting")
	}
	if e := d.EphemeralStorage; e != nil && e.SizeInGiB < 21 {
		report("$.ephemeralStorage.sizeInGiB", "EphemeralStorage size should be at least 21")
	} else if e != nil && e.SizeInGiB > 200 {
		report("$.ephemeralStorage.sizeInGiB", "EphemeralStorage size should be at most 200")
	}
	for i, v := range d.Volumes {
		if v.Host != nil && v.Host.SourcePath != "" {
			report(fmt.Sprintf("$.volumes[%d].host.sourcePath", i), "Fargate does not support the 'host.sourcePath' setting of volumes")
		}
		if v.Docker != nil {
			report(fmt.Sprintf("$.volumes[%d].dockerVolumeConfiguration", i), "Fargate does not support the 'dockerVolumeConfiguration' setting of volumes")
		}
	}
}

func checkFargateContainer(_ *TaskDefinition, c *Container, report Report) {
	if isTrue(c.Privileged) {
		report(".privileged", "Fargate requires that the 'privileged' setting be 'false'")
	}
	if isTrue(c.DisableNetworking) {
		report(".disableNetworking", "Fargate requires that the 'disableNetworking' setting be 'false'")
	}
	l := c.LinuxParameters
	if l == nil {
		l = &LinuxParameters{}
	}
	gpu := slices.ContainsFunc(c.ResourceRequirements, func(r TypeValue) bool { return r.Type == "GPU" })
	for _, s := range []struct {
		key string
		set bool
	}{
		{".dockerSecurityOptions", len(c.DockerSecurityOptions) > 0},
		{".linuxParameters.devices", len(l.Devices) > 0},
		{".linuxParameters.sharedMemorySize", l.SharedMemorySize != nil},
		{".linuxParameters.maxSwap", l.MaxSwap != nil},
		{".linuxParameters.swappiness", l.Swappiness != nil},
		{".resourceRequirements", gpu},
	} {
		if s.set {
			report(s.key, "Fargate does not support the '%s' setting of containers", strings.TrimPrefix(s.key, "."))
		}
	}
	if l.Capabilities == nil {
		return
	}
	for _, name := range l.Capabilities.Add {
		if name != "SYS_PTRACE" {
			report(".linuxParameters.capabilities.add", "Fargate allows to add the capability SYS_PTRACE only, not %s.", name)
		}
	}
}

func checkExecutionRole(d *TaskDefinition, c *Container, report Report) {
	if d.ExecutionRoleARN != "" {
		return
	}
	if l := c.LogConfiguration; l != nil && l.LogDriver == "awslogs" {
		report(".logConfiguration", "Fargate requires task definition to have execution role ARN to support log driver awslogs.")
	}
	if regexp.MustCompile(`^\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com`).MatchString(c.Image) {
		report(".image", "Fargate requires task definition to have execution role ARN to support ECR images.")
	}
	if len(c.Secrets) > 0 {
		report(".secrets", "Fargate requires task definition to have execution role ARN to support secrets.")
	}
}

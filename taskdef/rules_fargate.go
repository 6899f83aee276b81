package taskdef

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// fargateRules are about the size, the network and the logs of a task on Fargate.
var fargateRules = []Rule{
	{Code: "fargate-network-mode", Scope: OnFargate, Members: []string{"networkMode"},
		Text: "Fargate only supports network mode 'awsvpc'.",
		Fix:  "set networkMode to awsvpc", task: func(d *subject, report report) {
			if d.NetworkMode != "awsvpc" {
				report("networkMode")
			}
		}},
	{Code: "fargate-cpu", Scope: OnFargate, Members: []string{"cpu"},
		Text: "Fargate requires that 'cpu' be defined at the task level.",
		Fix:  "set cpu, such as 256", task: func(d *subject, report report) {
			if d.CPU == "" && !d.blank("cpu") {
				report("cpu")
			}
		}},
	{Code: "fargate-memory", Scope: OnFargate, Members: []string{"memory"},
		Text: "Fargate requires that 'memory' be defined at the task level.",
		Fix:  "set memory, such as 512", task: func(d *subject, report report) {
			if d.Memory == "" && !d.blank("memory") {
				report("memory")
			}
		}},
	{Code: "fargate-size", Scope: OnFargate,
		Members: []string{"cpu", "memory", "runtimePlatform.operatingSystemFamily"},
		Text: "No Fargate configuration exists for given values: {cpu} CPU, {memory} memory. See the Amazon ECS " +
			"documentation for the valid values.",
		Fix: "the next valid size is cpu {nextCPU} with memory {nextMemory}", task: checkFargateSize},
	{Code: "fargate-execution-role-logs", Scope: OnFargate,
		Members: []string{"executionRoleArn", ".logConfiguration.logDriver"},
		Text:    "Fargate requires task definition to have execution role ARN to support log driver awslogs.",
		Fix:     needRole,
		each: func(d *subject, c *Container, report report) {
			if l := c.LogConfiguration; l != nil && l.LogDriver == awslogs && d.ExecutionRoleARN == "" {
				report(".logConfiguration")
			}
		}},
	{Code: "fargate-execution-role-image", Scope: OnFargate, Members: []string{"executionRoleArn", ".image"},
		Text: "Fargate requires task definition to have execution role ARN to support ECR images.", Fix: needRole,
		each: func(d *subject, c *Container, report report) {
			if d.ExecutionRoleARN == "" && ecrImage().MatchString(c.Image) {
				report(".image")
			}
		}},
	{Code: "fargate-log-driver", Scope: OnFargate, Members: []string{".logConfiguration.logDriver"},
		Text: "{driver} is not a valid log driver. Must be one of [awslogs,splunk,awsfirelens]", Fix: "use one of them",
		each: func(_ *subject, c *Container, report report) {
			if l := c.LogConfiguration; l != nil && l.LogDriver != "" &&
				!slices.Contains([]string{awslogs, "splunk", awsfirelens}, l.LogDriver) {
				report(".logConfiguration.logDriver", l.LogDriver)
			}
		}},
	{Code: "fargate-stream-prefix", Scope: OnFargate,
		Members: []string{".logConfiguration.logDriver", ".logConfiguration.options",
			`.logConfiguration.options["awslogs-stream-prefix"]`},
		Text: "Fargate requires log configuration options to include awslogs-stream-prefix to support log " +
			"driver awslogs.",
		Fix: "add it: log streams are named PREFIX/CONTAINER/TASK",
		each: func(_ *subject, c *Container, report report) {
			if l := c.LogConfiguration; l != nil && l.LogDriver == awslogs && l.Options["awslogs-stream-prefix"] == "" {
				report(".logConfiguration.options")
			}
		}},
	{Code: "fargate-timeout", Scope: OnFargate, Members: []string{".startTimeout", ".stopTimeout"},
		Text: "Tasks using the Fargate launch type must have a container {which} timeout of less than 120 seconds.",
		Fix:  "take 2 to 120 seconds",
		each: func(_ *subject, c *Container, report report) {
			if c.StartTimeout != nil && *c.StartTimeout > 120 {
				report(".startTimeout", "start")
			}
			if c.StopTimeout != nil && *c.StopTimeout > 120 {
				report(".stopTimeout", "stop")
			}
		}},
}

// fargateSettingRules are about settings that Fargate does not have.
var fargateSettingRules = []Rule{
	{Code: "fargate-task-setting", Scope: OnFargate, Members: []string{"ipcMode", "placementConstraints"},
		Text: "Fargate compatible task definitions do not support {setting}", Fix: "remove it",
		task: func(d *subject, report report) {
			if d.IPCMode != "" {
				report("ipcMode", "ipcMode")
			}
			if len(d.PlacementConstraints) > 0 {
				report("placementConstraints", "constraints")
			}
		}},
	{Code: "fargate-volume", Scope: OnFargate,
		Members: []string{"volumes[*].host.sourcePath", "volumes[*].dockerVolumeConfiguration"},
		Text:    "Fargate compatible task definitions do not support {setting}", Fix: "remove it, or use an EFS volume",
		task: func(d *subject, report report) {
			for i, v := range d.Volumes {
				if v.Host != nil && v.Host.SourcePath != "" {
					report(fmt.Sprintf("volumes[%d].host.sourcePath", i), "sourcePath")
				}
				if v.Docker != nil {
					report(fmt.Sprintf("volumes[%d].dockerVolumeConfiguration", i), "dockerVolumeConfiguration")
				}
			}
		}},
	{Code: "fargate-pid-mode", Scope: OnFargate, Members: []string{"pidMode"},
		Text: "Tasks using the Fargate launch type do not support pidMode '{mode}'. The supported value for " +
			"pidMode is 'task'.",
		Fix: "set pidMode to task, or remove it", task: func(d *subject, report report) {
			if d.PIDMode != "" && d.PIDMode != "task" {
				report("pidMode", d.PIDMode)
			}
		}},
	{Code: "fargate-privileged", Scope: OnFargate, Members: []string{".privileged"}, Fix: "remove it",
		Text: "Fargate requires that the ‘privileged’ setting be ‘false’ at the container level.",
		each: func(_ *subject, c *Container, report report) {
			if isTrue(c.Privileged) {
				report(".privileged")
			}
		}},
	{Code: "fargate-container-setting", Scope: OnFargate,
		Text: "Fargate compatible task definitions do not support {setting}", Fix: "remove it",
		Members: []string{".dockerSecurityOptions", ".linuxParameters.devices", ".linuxParameters.sharedMemorySize",
			".linuxParameters.maxSwap", ".linuxParameters.swappiness"},
		each: checkFargateContainer},
	{Code: "fargate-gpu", Scope: OnFargate, Members: []string{".resourceRequirements[*].type"},
		Text: "Tasks using the Fargate launch type do not support GPU resource requirements.",
		Fix:  "remove it, or use EC2",
		each: func(_ *subject, c *Container, report report) {
			if slices.ContainsFunc(c.ResourceRequirements,
				func(r ResourceRequirement) bool { return r.Type == "GPU" }) {
				report(".resourceRequirements")
			}
		}},
	{Code: "fargate-capability", Scope: OnFargate, Members: []string{".linuxParameters.capabilities.add[*]"},
		Text: "{capability} is not allowed on Fargate.",
		Fix:  "remove it: SYS_PTRACE is the only one that can be added",
		each: func(_ *subject, c *Container, report report) {
			if c.LinuxParameters == nil || c.LinuxParameters.Capabilities == nil {
				return
			}
			for i, name := range c.LinuxParameters.Capabilities.Add {
				if name != "SYS_PTRACE" {
					report(fmt.Sprintf(".linuxParameters.capabilities.add[%d]", i), name)
				}
			}
		}},
}

func checkFargateSize(d *subject, report report) {
	var want Size
	var okCPU, okMemory bool
	want.CPU, okCPU = d.CPUUnits()
	want.Memory, okMemory = d.MemoryMiB()
	windows := d.RuntimePlatform.IsWindows()
	sizes := fargateSizes(windows)
	if !okCPU || !okMemory || slices.Contains(sizes, want) {
		return
	}
	path := "cpu"
	if slices.ContainsFunc(sizes, func(s Size) bool { return s.CPU == want.CPU }) {
		path = "memory"
	}
	next, ok := NextFargateSize(want, windows)
	if !ok {
		next = sizes[len(sizes)-1]
	}
	report(path, want.CPU, want.Memory, next.CPU, next.Memory)
}

func checkFargateContainer(_ *subject, c *Container, report report) {
	l := c.LinuxParameters
	if l == nil {
		l = &LinuxParameters{}
	}
	for _, s := range []struct {
		path  string
		given bool
	}{
		{".dockerSecurityOptions", len(c.DockerSecurityOptions) > 0},
		{".linuxParameters.devices", len(l.Devices) > 0},
		{".linuxParameters.sharedMemorySize", l.SharedMemorySize != nil},
		{".linuxParameters.maxSwap", l.MaxSwap != nil},
		{".linuxParameters.swappiness", l.Swappiness != nil},
	} {
		if s.given {
			report(s.path, s.path[strings.LastIndexByte(s.path, '.')+1:])
		}
	}
}

var ecrImage = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\d{12}\.dkr\.ecr[a-z0-9-]*\.[a-z0-9-]+\.amazonaws\.com`)
})

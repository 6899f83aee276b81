package runtime

import (
	"fmt"

	"github.com/meshtask/consul-ecs/taskdef"
)

// Unfaithful lists what a valid definition asks for and gets otherwise here,
// each with its place. CPU limits are left out: every definition has them.
func Unfaithful(def *taskdef.TaskDefinition) []string {
	var found []string
	note := func(asked bool, path, instead string) {
		if asked {
			found = append(found, "$."+path+": not emulated: "+instead)
		}
	}
	note(len(def.RequiresCompatibilities) > 0 && !def.IsFargate(), "requiresCompatibilities", "the task runs as on Fargate")
	note(def.NetworkMode != "" && def.NetworkMode != "awsvpc", "networkMode", "the -network flag of localecs decides, awsvpc by default")
	note(def.RuntimePlatform.IsWindows(), "runtimePlatform.operatingSystemFamily", "containers run on Linux")
	note(def.PIDMode == "host", "pidMode", "each container has its own processes")
	note(def.IPCMode != "", "ipcMode", "each container has its own IPC namespace")
	note(def.ProxyConfiguration != nil, "proxyConfiguration", "no traffic is redirected")
	note(def.TrustedExecution != nil, "trustedExecutionConfiguration", "containers share the host")
	for i, v := range def.Volumes {
		path := fmt.Sprintf("volumes[%d]", i)
		const instead = "an empty directory of the task takes its hierarchy"
		note(v.Host != nil && v.Host.SourcePath != "", path+".host.sourcePath", instead)
		note(taskdef.Or(v.ConfiguredAtLaunch, false), path+".configuredAtLaunch", instead)
		note(v.Docker != nil, path+".dockerVolumeConfiguration", instead)
		note(v.EFS != nil, path+".efsVolumeConfiguration", instead)
		note(v.S3Files != nil, path+".s3filesVolumeConfiguration", instead)
		note(v.FSxWindows != nil, path+".fsxWindowsFileServerVolumeConfiguration", instead)
	}
	for i, c := range def.ContainerDefinitions {
		path := fmt.Sprintf("containerDefinitions[%d]", i)
		if l := c.LinuxParameters; l != nil {
			path := path + ".linuxParameters"
			note(otherCapabilities(l.Capabilities), path+".capabilities", "no container has more than the default capabilities and NET_ADMIN")
			note(len(l.Tmpfs) > 0, path+".tmpfs", "the paths are part of the root file system")
			note(len(l.Devices) > 0, path+".devices", "the container has no devices of the host")
			note(l.SharedMemorySize != nil, path+".sharedMemorySize", "/dev/shm has 64 MiB")
		}
		note(len(c.Links) > 0, path+".links", "containers of a task find each other at 127.0.0.1, as with awsvpc")
		note(taskdef.Or(c.Privileged, false), path+".privileged", "the container has no more rights than others")
		note(len(c.SystemControls) > 0, path+".systemControls", "the kernel's defaults stay")
		note(len(c.ResourceRequirements) > 0, path+".resourceRequirements", "the container has no devices of the host")
		note(c.FirelensConfiguration != nil, path+".firelensConfiguration", "logs go to files")
		note(taskdef.Or(c.PseudoTerminal, false), path+".pseudoTerminal", "the container has no terminal")
	}
	return found
}

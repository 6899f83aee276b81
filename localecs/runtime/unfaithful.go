package runtime

import (
	"fmt"
	goruntime "runtime"

	"github.com/meshtask/consul-ecs/taskdef"
)

// Unfaithful lists what a valid definition asks for and gets otherwise here,
// each with its place. CPU limits are left out: every definition has them.
func Unfaithful(def *taskdef.TaskDefinition) []string {
	var found unfaithful
	warn := found.add
	warn(len(def.RequiresCompatibilities) > 0 && !def.IsFargate(), "requiresCompatibilities",
		"the task runs as on Fargate")
	warn(def.NetworkMode != "" && def.NetworkMode != "awsvpc", "networkMode",
		"the -network flag of localecs decides, awsvpc by default")
	warn(def.RuntimePlatform.IsWindows(), "runtimePlatform.operatingSystemFamily", "containers run on Linux")
	architecture := taskdef.Or(def.RuntimePlatform, taskdef.RuntimePlatform{}).CPUArchitecture
	goarch := map[string]string{"X86_64": "amd64", "ARM64": "arm64"}[architecture]
	warn(architecture != "" && goarch != goruntime.GOARCH, "runtimePlatform.cpuArchitecture",
		"programs are for "+goruntime.GOARCH+", as this machine")
	warn(taskdef.Or(def.EnableFaultInjection, false), "enableFaultInjection", "what is under /fault/v1 answers 404")
	warn(len(def.InferenceAccelerators) > 0, "inferenceAccelerators", "the task has no devices of the host")
	warn(len(def.PlacementConstraints) > 0, "placementConstraints", "there is one machine")
	warn(def.EphemeralStorage != nil, "ephemeralStorage", "the size of the disk is not limited")
	warn(def.PIDMode == "host", "pidMode", "each container has its own processes")
	warn(def.IPCMode != "", "ipcMode", "each container has its own IPC namespace")
	warn(def.ProxyConfiguration != nil, "proxyConfiguration", "no traffic is redirected")
	warn(def.TrustedExecution != nil, "trustedExecutionConfiguration", "containers share the host")
	for i, v := range def.Volumes {
		path := fmt.Sprintf("volumes[%d]", i)
		const instead = "an empty directory of the task takes its hierarchy"
		warn(v.Host != nil && v.Host.SourcePath != "", path+".host.sourcePath", instead)
		warn(taskdef.Or(v.ConfiguredAtLaunch, false), path+".configuredAtLaunch", instead)
		warn(v.Docker != nil, path+".dockerVolumeConfiguration", instead)
		warn(v.EFS != nil, path+".efsVolumeConfiguration", instead)
		warn(v.S3Files != nil, path+".s3filesVolumeConfiguration", instead)
		warn(v.FSxWindows != nil, path+".fsxWindowsFileServerVolumeConfiguration", instead)
	}
	for i, c := range def.ContainerDefinitions {
		found.container(fmt.Sprintf("containerDefinitions[%d]", i), c)
	}
	return found
}

type unfaithful []string

func (u *unfaithful) add(asked bool, path, instead string) {
	if asked {
		*u = append(*u, "$."+path+": not emulated: "+instead)
	}
}

func (u *unfaithful) container(path string, c taskdef.Container) {
	warn := u.add
	if l := c.LinuxParameters; l != nil {
		path := path + ".linuxParameters"
		warn(otherCapabilities(l.Capabilities), path+".capabilities.add",
			"no container has more than the default capabilities and NET_ADMIN")
		warn(len(l.Tmpfs) > 0, path+".tmpfs", "the paths are part of the root file system")
		warn(len(l.Devices) > 0, path+".devices", "the container has no devices of the host")
		warn(l.MaxSwap != nil, path+".maxSwap", "the host's swap is not limited")
		warn(l.Swappiness != nil, path+".swappiness", "the host's stays")
		warn(l.SharedMemorySize != nil, path+".sharedMemorySize", "/dev/shm has 64 MiB")
	}
	warn(c.RepositoryCredentials != nil, path+".repositoryCredentials", "images are pulled without credentials")
	warn(c.VersionConsistency != "", path+".versionConsistency", "each task takes the image as it is at its start")
	warn(len(c.Links) > 0, path+".links", "containers of a task find each other at 127.0.0.1, as with awsvpc")
	warn(taskdef.Or(c.Privileged, false), path+".privileged", "the container has no more rights than others")
	warn(len(c.SystemControls) > 0, path+".systemControls", "the kernel's defaults stay")
	warn(len(c.ResourceRequirements) > 0, path+".resourceRequirements", "the container has no devices of the host")
	warn(c.FirelensConfiguration != nil, path+".firelensConfiguration", "logs go to files")
	warn(taskdef.Or(c.DisableNetworking, false), path+".disableNetworking", "the container has the task's network")
	warn(len(c.DNSServers) > 0, path+".dnsServers", "names are those of localecs")
	warn(len(c.DNSSearchDomains) > 0, path+".dnsSearchDomains", "names are those of localecs")
	warn(len(c.ExtraHosts) > 0, path+".extraHosts", "/etc/hosts is the task's, as with awsvpc")
	warn(len(c.DockerSecurityOptions) > 0, path+".dockerSecurityOptions", "the defaults of localecs apply")
	warn(len(c.CredentialSpecs) > 0, path+".credentialSpecs", "the container gets no such credentials")
	warn(taskdef.Or(c.Interactive, false), path+".interactive", "the container's input is empty")
	warn(taskdef.Or(c.PseudoTerminal, false), path+".pseudoTerminal", "the container has no terminal")
}

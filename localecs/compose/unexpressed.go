package compose

import (
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// warnings are about a definition.
type warnings []string

// add adds a warning about the setting at a path, if it is used.
func (n *warnings) add(asked bool, path, instead string) {
	if asked {
		*n = append(*n, "$."+path+": "+instead)
	}
}

// unexpressed lists the settings of a valid definition that the file cannot express. Limits of the
// task's processor and memory, and log drivers, are left out: every definition has them.
func unexpressed(def *taskdef.TaskDefinition, startInterval bool) []string {
	var n warnings
	n.add(def.NetworkMode != "" && def.NetworkMode != "awsvpc", "networkMode", "the task has its own network, as with awsvpc")
	n.add(def.RuntimePlatform.IsWindows(), "runtimePlatform.operatingSystemFamily", "containers run on Linux")
	n.add(taskdef.Or(def.RuntimePlatform, taskdef.RuntimePlatform{}).CPUArchitecture != "",
		"runtimePlatform.cpuArchitecture", "images are of the engine's architecture")
	n.add(taskdef.Or(def.EnableFaultInjection, false), "enableFaultInjection", "what is under /fault/v1 answers 404")
	n.add(len(def.InferenceAccelerators) > 0, "inferenceAccelerators", "the task has no devices of the host")
	n.add(len(def.PlacementConstraints) > 0, "placementConstraints", "there is one machine")
	n.add(def.EphemeralStorage != nil, "ephemeralStorage", "the size of the disk is not limited")
	n.add(def.ProxyConfiguration != nil, "proxyConfiguration", "no traffic is redirected")
	n.add(def.TrustedExecution != nil, "trustedExecutionConfiguration", "containers share the host")
	for i, v := range def.Volumes {
		path := fmt.Sprintf("volumes[%d]", i)
		const instead = "a volume of the project takes its place"
		n.add(taskdef.Or(v.ConfiguredAtLaunch, false), path+".configuredAtLaunch", instead)
		n.add(v.Docker != nil, path+".dockerVolumeConfiguration", instead)
		n.add(v.EFS != nil, path+".efsVolumeConfiguration", instead)
		n.add(v.S3Files != nil, path+".s3filesVolumeConfiguration", instead)
		n.add(v.FSxWindows != nil, path+".fsxWindowsFileServerVolumeConfiguration", instead)
	}
	for i, c := range def.ContainerDefinitions {
		n.container(fmt.Sprintf("containerDefinitions[%d]", i), c, startInterval)
	}
	return n
}

func (n *warnings) container(path string, c taskdef.Container, startInterval bool) {
	for i, d := range c.DependsOn {
		n.add(d.Condition == taskdef.ConditionComplete, fmt.Sprintf("%s.dependsOn[%d].condition", path, i), "COMPLETE: the container does not start if "+d.ContainerName+" exits with a code other than 0")
	}
	n.add(c.StartTimeout != nil, path+".startTimeout", "compose has no start timeout")
	if p := c.RestartPolicy; p != nil && p.Enabled {
		n.add(len(p.IgnoredExitCodes) > 0, path+".restartPolicy.ignoredExitCodes", "the engine starts the container again after every exit code")
		n.add(p.RestartAttemptPeriod != nil, path+".restartPolicy.restartAttemptPeriod", "the engine starts the container again at once, and waits longer each time when it runs less than 10 s")
	}
	if h := c.HealthCheck; h.Enabled() && h.StartPeriod != nil && *h.StartPeriod > 0 && !startInterval {
		n.add(true, path+".healthCheck.startPeriod", "newer engines check every 5 s in it, whatever the interval")
	}
	if l := c.LinuxParameters; l != nil {
		n.add(l.MaxSwap != nil, path+".linuxParameters.maxSwap", "the engine's default applies")
		n.add(l.Swappiness != nil, path+".linuxParameters.swappiness", "the kernel's default applies")
	}
	n.add(len(c.EnvironmentFiles) > 0, path+".environmentFiles", "their variables are missing: add env_file in a second compose file")
	n.add(c.VersionConsistency != "", path+".versionConsistency", "the engine takes the image that it has")
	n.add(c.RepositoryCredentials != nil, path+".repositoryCredentials", "the engine uses the credentials of docker login")
	n.add(len(c.ResourceRequirements) > 0, path+".resourceRequirements", "the container gets no devices of the host")
	n.add(c.FirelensConfiguration != nil, path+".firelensConfiguration", "logs go to docker compose logs")
	n.add(len(c.CredentialSpecs) > 0, path+".credentialSpecs", "they are ignored")
	n.add(len(c.DockerSecurityOptions) > 0, path+".dockerSecurityOptions", "the engine's defaults apply")
	n.add(taskdef.Or(c.DisableNetworking, false), path+".disableNetworking", "the container has the task's network")
	for _, f := range []struct {
		key   string
		asked bool
	}{
		{"links", len(c.Links) > 0}, {"hostname", c.Hostname != ""}, {"dnsServers", len(c.DNSServers) > 0},
		{"dnsSearchDomains", len(c.DNSSearchDomains) > 0}, {"extraHosts", len(c.ExtraHosts) > 0},
	} {
		n.add(f.asked, path+"."+f.key, "not available to containers that share a task's network")
	}
	n.add(c.LogConfiguration != nil && strings.HasPrefix(c.LogConfiguration.LogDriver, "awsfirelens"), path+".logConfiguration", "logs go to docker compose logs")
}

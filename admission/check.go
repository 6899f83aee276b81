package admission

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// checkRules applies the rules of ECS, passes on what it knows of keys, and checks flags.
func checkRules(t *task) {
	for _, v := range t.doc.Validate() {
		if what := roleRules[v.Code]; what != "" && t.doc.isInjected(v.Path) {
			t.doc.report(codeExecRole, "$.executionRoleArn", "what", what)
			continue
		}
		if share := meshShare(t, v.Code); share > 0 {
			v.Fix += fmt.Sprintf("; %d of them are the mesh's", share)
		}
		t.doc.findings = append(t.doc.findings, Finding(v))
	}
	for _, w := range t.doc.Warnings {
		if w.Near != "" {
			t.doc.reportAt(codeKeyNear, w.Path, "near", w.Near)
			continue
		}
		t.doc.reportAt(codeKey, w.Path, "message", w.Message)
	}
	if t.containers.flags != nil {
		checkFlags(t)
	}
}

// meshShare returns how many of what a rule counts are the mesh's.
func meshShare(t *task, rule string) int {
	switch {
	case t.cfg == nil:
	case rule == "containers-count":
		return len(t.sidecarBuilder().all())
	case rule == "tag-count":
		tags := slices.DeleteFunc(slices.Clone(t.doc.Definition.Tags), func(tag taskdef.Tag) bool {
			return tag.Key != annotationMesh && tag.Key != taskdef.SealTag
		})
		return len(tags)
	}
	return 0
}

// roleRules are rules that injected containers break when the task lacks an execution
// role, by what of them needs it.
var roleRules = map[string]string{
	"secret-role": "secrets of the mesh file", "fargate-execution-role-logs": "logs in awslogs",
	"fargate-execution-role-image": "images in ECR",
}

// isInjected reports whether a path of the document is in a container of the mesh.
func (d *document) isInjected(path string) bool {
	for i, c := range d.Definition.ContainerDefinitions {
		if workload.IsMeshContainer(c.Name) &&
			strings.HasPrefix(path, d.Locate(fmt.Sprintf("$.containerDefinitions[%d].", i))) {
			return true
		}
	}
	return false
}

// checkResources applies the rules about sizes and times.
func checkResources(t *task) {
	if t.cfg == nil {
		return
	}
	checkSize(t.doc)
	checkMemory(t.doc)
	checkCPU(t)
	checkShutdown(t)
}

// checkMesh applies the rules that the mesh has besides.
func checkMesh(t *task) {
	if t.cfg == nil {
		return
	}
	checkNetwork(t)
	checkNames(t)
	checkKinds(t)
	checkPorts(t)
	checkPlainPorts(t)
	checkLaunch(t)
	checkRole(t)
	checkDefaultImages(t)
	checkAttestation(t.doc)
	if c := t.mesh.settings.Client; hasAgent(t.cfg) && len(c.RetryJoin) == 0 && c.Configuration == "" {
		t.doc.report(codeServers, "$")
	}
	checkBootstrap(t)
	checkSynced(t)
	checkImages(t)
	apps := t.containers.applications()
	if t.cfg.Gateway == nil && t.containers.firstEssential() < 0 && !t.doc.hasComputedContainer() {
		t.doc.report(codeEssential, "$.containerDefinitions")
	}
	for i := range t.doc.Definition.ContainerDefinitions {
		if _, _, found := t.images.find(i); !found {
			checkArchitecture(t.doc, fmt.Sprintf("$.containerDefinitions[%d]", i),
				t.doc.Definition.ContainerDefinitions[i].Image)
		}
		if c := &t.doc.Definition.ContainerDefinitions[i]; !workload.IsMeshContainer(c.Name) || isUserProxy(*c) {
			checkContainer(t, i, c, slices.Contains(apps, i))
		} else {
			checkSidecar(t, i, c)
		}
	}
	checkRoles(t)
}

// checkSynced finds containers whose ECS health would never make the service healthy.
func checkSynced(t *task) {
	for i, name := range t.cfg.HealthSyncContainers {
		message := ""
		containers := t.doc.Definition.ContainerDefinitions
		switch at := slices.IndexFunc(containers, func(c taskdef.Container) bool { return c.Name == name }); {
		case at < 0 && !areAllNamed(t.doc):
		case at < 0:
			message = fmt.Sprintf("the task has no container %s", name)
		case t.doc.isAbsent(t.doc.containers()[at], "healthCheck") || containers[at].HealthCheck != nil &&
			slices.Equal(containers[at].HealthCheck.Command, []string{"NONE"}):
			message = fmt.Sprintf("the container %s has no health check", name)
		}
		if message != "" {
			t.doc.report(codeConfig, "$", "path", fmt.Sprintf("$.healthSyncContainers[%d]", i), "message", message)
		}
	}
}

// areAllNamed reports whether the names of all containers are known.
func areAllNamed(d *document) bool {
	return !slices.ContainsFunc(d.Definition.ContainerDefinitions,
		func(c taskdef.Container) bool { return c.Name == "" })
}

func checkBootstrap(t *task) {
	dir := t.cfg.BootstrapDir
	instead := path.Clean(dir)
	if path.IsAbs(dir) && dir == instead && dir != "/" {
		checkDirectory(t)
		return
	}
	if !path.IsAbs(dir) || instead == "/" {
		instead = defaultBootstrapDir
	}
	t.doc.report(codeBootstrap, "$", "dir", dir, "instead", instead)
}

func checkNetwork(t *task) {
	def := t.doc.Definition
	hostGateway := hasAgent(t.cfg) && t.cfg.Gateway != nil && def.NetworkMode == "host" && !def.IsFargate()
	if t.doc.isFullDefinition() && !t.doc.IsUnknown("$.networkMode") && def.NetworkMode != awsvpc && !hostGateway {
		t.doc.report(codeNetMode, "$.networkMode", "mode", def.NetworkMode)
	}
	if def.ProxyConfiguration != nil {
		t.doc.report(codeAppMesh, "$.proxyConfiguration")
	}
	if isTransparent(t.cfg) && def.IsFargate() {
		t.doc.report(codeTProxy, "$.requiresCompatibilities")
	}
}

func validService(name string) bool { return len(name) <= 256 && config.ValidName(name) }

// checkNames checks the names that become those of services.
func checkNames(t *task) {
	if g := t.cfg.Gateway; g != nil {
		if g.Name != "" && !validService(g.Name) {
			t.doc.report(codeServiceName, t.configurer().nameSource("gateway"), "name", g.Name)
		}
		return
	}
	if s := t.cfg.Service; s != nil && s.Name != "" && (!validService(s.Name) || workload.IsProxyID(s.Name)) {
		t.doc.report(codeServiceName, t.configurer().nameSource("service"), "name", s.Name)
	}
	for _, u := range t.cfg.Proxy.Upstreams {
		if u.DestinationType != "prepared_query" && !validService(u.DestinationName) {
			t.doc.report(codeUpstream, t.annotations.pathOf(annotationUpstreams), "name", u.DestinationName, "message",
				"this is not a valid service name")
		}
	}
}

// checkSize warns before ECS refuses the definition.
func checkSize(d *document) {
	const warnAt = 61440
	size := len(d.Task.JSON())
	if size <= warnAt || !d.isFullDefinition() {
		return
	}
	largest, name := 0, ""
	for i, n := range d.containers() {
		if part := len(n.JSON()); part > largest {
			largest, name = part, d.containerName(i)
		}
	}
	d.report(codeSize, "$", "size", size, "container", name)
}

// checkMemory warns when the applications leave too little of the task's memory.
func checkMemory(d *document) {
	def := d.Definition
	total, known := def.MemoryMiB()
	cpu, _ := def.CPUUnits()
	taken := 0
	for _, c := range def.ContainerDefinitions {
		switch {
		case c.Memory != nil:
			taken += *c.Memory
		case c.MemoryReservation != nil:
			taken += *c.MemoryReservation
		}
	}
	free := total - taken
	if !known || taken == 0 || free >= proxyMemory || free < 0 {
		return
	}
	next, ok := taskdef.NextFargateSize(taskdef.Size{CPU: cpu, Memory: taken + proxyMemory}, false)
	if !ok || !def.IsFargate() {
		next = taskdef.Size{CPU: cpu, Memory: taken + proxyMemory}
	}
	d.report(codeMemory, "$.memory", "left", free, "memory", total, "nextCPU", next.CPU, "nextMemory", next.Memory)
}

// checkContainer checks one container of the user's.
func checkContainer(t *task, i int, c *taskdef.Container, application bool) {
	at := fmt.Sprintf("$.containerDefinitions[%d]", i)
	if workload.IsAWSContainer(c.Name) {
		t.doc.report(codeNameAWS, at+".name", "container", c.Name)
	}
	if application {
		checkUser(t, i, at, c)
	}
	checkMounts(t, at, c)
	for j, e := range c.Environment {
		secret := strings.HasSuffix(e.Name, "_TOKEN") || strings.HasSuffix(e.Name, "_SECRET") ||
			strings.HasSuffix(e.Name, "_PASSWORD")
		if secret && e.Value != "" {
			t.doc.report(codeSecret, fmt.Sprintf("%s.environment[%d]", at, j), "name", e.Name)
		}
	}
	checkRuntime(t.doc, at, c)
}

// checkMounts finds mounts over each other, with which Docker creates no container, and
// over the shared volume.
func checkMounts(t *task, at string, c *taskdef.Container) {
	taken := map[string]string{}
	if p := c.LinuxParameters; p != nil {
		for _, f := range p.Tmpfs {
			taken[path.Clean(f.ContainerPath)] = "a tmpfs"
		}
	}
	for j, m := range c.MountPoints {
		if m.ContainerPath == "" {
			continue
		}
		dir, where := path.Clean(m.ContainerPath), fmt.Sprintf("%s.mountPoints[%d]", at, j)
		if other := taken[dir]; other != "" {
			t.doc.report(codeMount, where, "container", c.Name, "source", m.SourceVolume, "other", other, "path", dir)
		}
		taken[dir] = "the volume " + m.SourceVolume
		within := dir == t.cfg.BootstrapDir || strings.HasPrefix(dir, t.cfg.BootstrapDir+"/")
		if within && m.SourceVolume != volumeName {
			t.doc.report(codeVolume, where, "container", c.Name, "source", m.SourceVolume, "path", m.ContainerPath,
				"dir", t.cfg.BootstrapDir, "fix", "mount it somewhere else")
		}
	}
}

// checkRuntime finds settings that ECS registers and that fail in a running task.
func checkRuntime(d *document, at string, c *taskdef.Container) {
	if d.Definition.NetworkMode == "host" && slices.Contains([]string{"root", "0"}, c.User) {
		d.report(codeUserRoot, at+".user", "container", c.Name)
	}
	if isUserProxy(*c) && c.ReadonlyRootFilesystem != nil && *c.ReadonlyRootFilesystem && !writable(c, "/tmp") {
		d.report(codeROFS, at+".readonlyRootFilesystem", "container", c.Name)
	}
	if h := c.HealthCheck; h.Enabled() && h.Timeout != nil && h.Interval != nil && *h.Timeout > *h.Interval {
		d.report(codeHealthTime, at+".healthCheck.timeout", "timeout", *h.Timeout, "interval", *h.Interval)
	}
	checkHang(d, at, c)
}

// checkHang finds essential containers that wait without end for one that is not.
func checkHang(d *document, at string, c *taskdef.Container) {
	for j, after := range c.DependsOn {
		other := d.Definition.Container(after.ContainerName)
		if after.Condition == taskdef.ConditionHealthy && c.IsEssential() && other != nil && !other.IsEssential() &&
			other.StartTimeout == nil {
			d.report(codeDepHang, fmt.Sprintf("%s.dependsOn[%d]", at, j), "container", c.Name, "other", other.Name)
		}
	}
}

// writable reports whether a container has a volume or a tmpfs at a path that it may
// write to.
func writable(c *taskdef.Container, dir string) bool {
	mounted := slices.ContainsFunc(c.MountPoints, func(m taskdef.MountPoint) bool {
		return path.Clean(m.ContainerPath) == dir && (m.ReadOnly == nil || !*m.ReadOnly)
	})
	tmpfs := func(f taskdef.Tmpfs) bool { return path.Clean(f.ContainerPath) == dir }
	return mounted || c.LinuxParameters != nil && slices.ContainsFunc(c.LinuxParameters.Tmpfs, tmpfs)
}

// checkArchitecture compares an image's name with the task's architecture.
func checkArchitecture(d *document, at, image string) {
	arch := "X86_64"
	if p := d.Definition.RuntimePlatform; p != nil && p.CPUArchitecture != "" {
		arch = p.CPUArchitecture
	}
	for other, suffixes := range map[string][]string{"X86_64": {"-amd64", "-x86_64"},
		"ARM64": {"-arm64", "-arm64v8", "-aarch64"}} {
		for _, suffix := range suffixes {
			if other != arch && strings.HasSuffix(image, suffix) {
				d.report(codeArch, at+".image", "image", image, "other", other, "arch", arch)
			}
		}
	}
}

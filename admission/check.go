package admission

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// checkRules applies the rules of ECS, and passes on what it knows of keys.
func checkRules(t *task) {
	for _, v := range t.doc.Validate() {
		t.findings = append(t.findings, Finding{v.Code, v.Severity, v.Path, v.Message, v.Fix})
	}
	for _, w := range t.doc.Warnings {
		t.report(codeKey, w.Path, "message", w.Message)
	}
}

// checkResources applies the rules about sizes and times.
func checkResources(t *task) {
	if t.cfg == nil {
		return
	}
	checkSize(t)
	checkMemory(t)
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
	if c := t.mesh.settings.Client; t.agent() && len(c.RetryJoin) == 0 && c.Configuration == "" {
		t.add(codeServers, "$")
	}
	if dir := t.cfg.BootstrapDir; !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" {
		t.add(codeBootstrap, "$", "dir", dir)
	}
	apps := t.applications()
	if t.cfg.Gateway == nil && t.primary() == nil && !t.anyComputed() {
		t.add(codeEssential, "$.containerDefinitions")
	}
	for i := range t.doc.Definition.ContainerDefinitions {
		if c := &t.doc.Definition.ContainerDefinitions[i]; !workload.Owned(c.Name) || isUserProxy(*c) {
			checkContainer(t, i, c, slices.Contains(apps, i))
		}
	}
}

func checkNetwork(t *task) {
	def := t.doc.Definition
	hostGateway := t.cfg.Gateway != nil && def.NetworkMode == "host" && !def.IsFargate()
	if t.whole() && !slices.Contains(t.doc.Unknown(), t.doc.Locate("$.networkMode")) && def.NetworkMode != awsvpc && !hostGateway {
		t.add(codeNetMode, "$.networkMode", "mode", def.NetworkMode)
	}
	if def.ProxyConfiguration != nil {
		t.add(codeAppMesh, "$.proxyConfiguration")
	}
	if t.transparent() && def.IsFargate() {
		t.add(codeTProxy, "$.requiresCompatibilities")
	}
}

var serviceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$`) })

func validService(name string) bool { return len(name) <= 256 && serviceName().MatchString(name) }

// checkNames checks the names that become those of services.
func checkNames(t *task) {
	if g := t.cfg.Gateway; g != nil {
		if g.Name != "" && !validService(g.Name) {
			t.add(codeServiceName, "$.family", "name", g.Name)
		}
		return
	}
	if s := t.cfg.Service; s != nil && s.Name != "" && (!validService(s.Name) || strings.HasSuffix(s.Name, "-sidecar-proxy")) {
		t.add(codeServiceName, "$.family", "name", s.Name)
	}
	for _, u := range t.cfg.Proxy.Upstreams {
		if u.DestinationType != "prepared_query" && !validService(u.DestinationName) {
			t.add(codeUpstream, "$", "name", u.DestinationName, "message", "this is not a name of a service")
		}
	}
}

// checkSize warns before ECS refuses the definition.
func checkSize(t *task) {
	const warnAt = 61440
	doc, _ := t.doc.Task.MarshalJSON() // it is JSON
	if len(doc) <= warnAt || !t.whole() {
		return
	}
	largest, name := 0, ""
	for i, n := range t.containers() {
		if part, _ := n.MarshalJSON(); len(part) > largest { // it is JSON
			largest, name = len(part), t.containerName(i)
		}
	}
	t.add(codeSize, "$", "size", len(doc), "container", name)
}

// checkMemory warns when the applications leave too little of the task's memory.
func checkMemory(t *task) {
	def := t.doc.Definition
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
	left := total - taken
	if !known || taken == 0 || left >= proxyMemory || left < 0 {
		return
	}
	next, ok := taskdef.NextFargateSize(taskdef.Size{CPU: cpu, Memory: taken + proxyMemory}, false)
	if !ok || !def.IsFargate() {
		next = taskdef.Size{CPU: cpu, Memory: taken + proxyMemory}
	}
	t.add(codeMemory, "$.memory", "left", left, "memory", total, "nextCPU", next.CPU, "nextMemory", next.Memory)
}

// checkContainer checks one container of the user's.
func checkContainer(t *task, i int, c *taskdef.Container, application bool) {
	at := fmt.Sprintf("$.containerDefinitions[%d]", i)
	user, _, _ := strings.Cut(c.User, ":")
	for uid, owner := range map[string]string{"5995": "the proxy", "5996": "health-sync"} {
		if application && user == uid {
			t.add(codeUser, at+".user", "container", c.Name, "user", c.User, "owner", owner)
		}
	}
	for j, m := range c.MountPoints {
		within := m.ContainerPath == t.cfg.BootstrapDir || strings.HasPrefix(m.ContainerPath, t.cfg.BootstrapDir+"/")
		if within && m.SourceVolume != volumeName {
			t.add(codeVolume, fmt.Sprintf("%s.mountPoints[%d]", at, j), "container", c.Name, "source", m.SourceVolume, "path", m.ContainerPath, "dir", t.cfg.BootstrapDir)
		}
	}
	for j, e := range c.Environment {
		secret := strings.HasSuffix(e.Name, "_TOKEN") || strings.HasSuffix(e.Name, "_SECRET") || strings.HasSuffix(e.Name, "_PASSWORD")
		if secret && e.Value != "" {
			t.add(codeSecret, fmt.Sprintf("%s.environment[%d]", at, j), "name", e.Name)
		}
	}
	checkArchitecture(t, at, c.Image)
	checkRuntime(t, at, c)
}

// checkRuntime finds settings that ECS registers and that fail in a running task.
func checkRuntime(t *task, at string, c *taskdef.Container) {
	if t.doc.Definition.NetworkMode == "host" && slices.Contains([]string{"root", "0"}, c.User) {
		t.add(codeUserRoot, at+".user", "container", c.Name)
	}
	if isUserProxy(*c) && c.ReadonlyRootFilesystem != nil && *c.ReadonlyRootFilesystem && !writable(c, "/tmp") {
		t.add(codeROFS, at+".readonlyRootFilesystem", "container", c.Name)
	}
	if h := c.HealthCheck; h.Enabled() && h.Timeout != nil && h.Interval != nil && *h.Timeout > *h.Interval {
		t.add(codeHealthTime, at+".healthCheck.timeout", "timeout", *h.Timeout, "interval", *h.Interval)
	}
	checkHang(t, at, c)
}

// checkHang finds essential containers that wait without end for one that is not.
func checkHang(t *task, at string, c *taskdef.Container) {
	for j, d := range c.DependsOn {
		other := t.doc.Definition.Container(d.ContainerName)
		if d.Condition == taskdef.ConditionHealthy && c.IsEssential() && other != nil && !other.IsEssential() && other.StartTimeout == nil {
			t.add(codeDepHang, fmt.Sprintf("%s.dependsOn[%d]", at, j), "container", c.Name, "other", other.Name)
		}
	}
}

// writable reports whether a container has a volume or a tmpfs at a path that it may
// write to.
func writable(c *taskdef.Container, dir string) bool {
	mounted := slices.ContainsFunc(c.MountPoints, func(m taskdef.MountPoint) bool {
		return m.ContainerPath == dir && (m.ReadOnly == nil || !*m.ReadOnly)
	})
	tmpfs := func(f taskdef.Tmpfs) bool { return f.ContainerPath == dir }
	return mounted || c.LinuxParameters != nil && slices.ContainsFunc(c.LinuxParameters.Tmpfs, tmpfs)
}

// checkArchitecture compares an image's name with the task's architecture.
func checkArchitecture(t *task, at, image string) {
	arch := "X86_64"
	if p := t.doc.Definition.RuntimePlatform; p != nil && p.CPUArchitecture != "" {
		arch = p.CPUArchitecture
	}
	for other, suffixes := range map[string][]string{"X86_64": {"-amd64", "-x86_64"}, "ARM64": {"-arm64", "-arm64v8", "-aarch64"}} {
		for _, suffix := range suffixes {
			if other != arch && strings.HasSuffix(image, suffix) {
				t.add(codeArch, at+".image", "image", image, "other", other, "arch", arch)
			}
		}
	}
}

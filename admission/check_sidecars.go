package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// Codes of findings about settings of the mesh's containers.
const (
	codeSidecarUser = "ADM-SIDECAR-USER"
	codeSidecars    = "ADM-SIDECARS"
	codeVolumeOwner = "ADM-VOLUME-OWNER"
)

// sidecarCodes returns the rules about settings of the mesh's containers, sorted by code.
func sidecarCodes() []Code {
	return []Code{
		{codeSidecarUser, taskdef.Error, "admission.sidecars of the mesh file has user {user} for container " +
			"{container}, which runs as {want} with the transparent proxy", "remove it there"},
		{codeSidecars, taskdef.Warn, "admission.sidecars of the mesh file has {role}, which this task does not get",
			"name one of {roles}"},
		{codeVolumeOwner, taskdef.Warn, "container {container} runs as user {user}, and cannot {use} the shared " +
			"volume at {dir}, which belongs to {owner}", "{fix}"},
	}
}

// proxyCPU is how much of the task's CPU the applications leave at least, in units of 1/1024 vCPU.
const proxyCPU = 32

// checkRoles finds settings for a container that the task does not get. A mesh file that several
// tasks share may have those of health-sync and of the proxy, which not every task gets.
func checkRoles(t *task) {
	roles := []string{roleAll, roleMeshInit, roleProxy, roleHealthSync}
	if hasAgent(t.cfg) {
		roles = append(roles, roleInstall, roleClient)
	}
	for _, role := range slices.Sorted(maps.Keys(t.mesh.settings.Sidecars)) {
		if !slices.Contains(roles, role) {
			t.doc.report(codeSidecars, "$", "role", role, "roles", strings.Join(roles, ", "))
		}
	}
}

// checkSidecar checks one container of the mesh.
func checkSidecar(t *task, i int, c *taskdef.Container) {
	at := fmt.Sprintf("$.containerDefinitions[%d]", i)
	checkMounts(t, at, c)
	checkArchitecture(t.doc, at, c.Image)
	if roleOf(c.Name) == roleProxy {
		checkLogs(t.doc, at, c)
	}
	checkWrittenRoot(t, at, c)
	// Only root writes the rules that redirect traffic, and they leave out the other two users.
	want := map[string]string{roleMeshInit: "0", roleProxy: "5995", roleHealthSync: "5996"}[roleOf(c.Name)]
	if uid, _, _ := strings.Cut(c.User, ":"); isTransparent(t.cfg) && want != "" && uid != want {
		t.doc.report(codeSidecarUser, at+".user", "user", c.User, "container", c.Name, "want", want)
		return
	}
	checkOwner(t, at, roleOf(c.Name), c)
}

// checkDirectory finds a shared volume that the mesh's containers cannot use: it has the owner of its
// directory in the image that mounts it first, and our image has the default directory alone.
func checkDirectory(t *task) {
	dir, gate := t.cfg.BootstrapDir, gate(t.cfg).ContainerName
	if dir == defaultBootstrapDir || t.mesh.settings.sidecar(roleOf(gate)).User != nil {
		return
	}
	name, use := gate, "write"
	if isTransparent(t.cfg) { // mesh-init is root then
		name, use = workload.ContainerHealthSync, "read"
	}
	t.doc.report(codeVolumeOwner, "$", "container", name, "user", meshUser, "use", use, "dir", dir,
		"owner", "root unless the image of "+gate+" has this directory",
		"fix", "remove bootstrapDir from the mesh file, or name the directory's owner in that image as user in "+
			"admission.sidecars."+roleOf(gate))
}

// checkOwner finds a user in the mesh file who cannot use the shared volume.
func checkOwner(t *task, at, role string, c *taskdef.Container) {
	given, use := t.mesh.settings.sidecar(role).User != nil, volumeUse(t.cfg, role)
	if given && t.cfg.BootstrapDir == defaultBootstrapDir && !usesVolume(c, use) {
		t.doc.report(codeVolumeOwner, at+".user", "container", c.Name, "user", c.User, "use", use, "dir",
			defaultBootstrapDir,
			"owner", meshUser, "fix", "remove user from admission.sidecars of the mesh file for it")
	}
}

// volumeUse returns what the container of a role does with the files of the shared volume.
func volumeUse(cfg *config.Config, role string) string {
	if role == roleProxy || role == roleHealthSync && hasAgent(cfg) {
		return "read"
	}
	return "write"
}

// usesVolume reports whether a container may read or write the files of the mesh's user: as that user, for
// reading in its group, or as root with the capability for that.
func usesVolume(c *taskdef.Container, use string) bool {
	uid, group, _ := strings.Cut(c.User, ":")
	mesh, _, _ := strings.Cut(meshUser, ":")
	switch {
	case c.User == "consul-ecs", uid == mesh, use == "read" && group == mesh:
		return true
	case uid != "0" && uid != "root":
		return false
	}
	var given taskdef.Capabilities
	if p := c.LinuxParameters; p != nil && p.Capabilities != nil {
		given = *p.Capabilities
	}
	with := func(name string) bool { return name == "ALL" || name == "DAC_OVERRIDE" }
	return slices.ContainsFunc(given.Add, with) || !slices.ContainsFunc(given.Drop, with)
}

// checkWrittenRoot finds a mesh-init that cannot write the names of upstreams or of the resolver: Docker
// makes the files of a container's network read-only with its root file system.
func checkWrittenRoot(t *task, at string, c *taskdef.Container) {
	writes := t.cfg.Proxy.NamedUpstreams || isTransparent(t.cfg) && t.cfg.TransparentProxy.ConsulDNS.Enabled
	if writes && roleOf(c.Name) == roleMeshInit && taskdef.Or(c.ReadonlyRootFilesystem, false) {
		t.doc.report(codeConfig, at+".readonlyRootFilesystem", "path", "$.admission.sidecars", "message",
			"with readonlyRootFilesystem mesh-init cannot write /etc/hosts and /etc/resolv.conf, and the task would "+
				"not start; set it to false for meshInit")
	}
}

// checkLogs finds a log driver that stops a proxy when its logs are not taken.
func checkLogs(d *document, at string, c *taskdef.Container) {
	if l := c.LogConfiguration; l != nil && l.Options["mode"] == "blocking" {
		d.report(codeLogBlock, at+".logConfiguration.options.mode", "container", c.Name)
	}
}

// checkCPU warns when the applications reserve the whole CPU of the task, and the proxy none.
func checkCPU(t *task) {
	total, known := t.doc.Definition.CPUUnits()
	taken, proxy := 0, proxyContainer(t.doc, t.cfg)
	for _, c := range t.doc.Definition.ContainerDefinitions {
		cpu := taskdef.Or(c.CPU, 0)
		switch {
		case c.Name == proxy && cpu > 0:
			return
		case !workload.IsMeshContainer(c.Name):
			taken += cpu
		}
	}
	if free := total - taken; known && free >= 0 && free < proxyCPU {
		t.doc.report(codeCPU, "$.cpu", "taken", taken, "cpu", total, "proxy", proxy)
	}
}

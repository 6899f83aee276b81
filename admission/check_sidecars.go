package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// proxyCPU is how much of the task's CPU the applications leave at least, in units of 1/1024 vCPU.
const proxyCPU = 32

// checkRoles finds settings for a container that the task does not get. A mesh file that several
// tasks share may have those of health-sync and of the proxy, which not every task gets.
func checkRoles(t *task) {
	roles := []string{roleAll, roleMeshInit, roleProxy, roleHealthSync}
	if t.agent() {
		roles = append(roles, roleInstall, roleClient)
	}
	for _, role := range slices.Sorted(maps.Keys(t.mesh.settings.Sidecars)) {
		if !slices.Contains(roles, role) {
			t.add(codeSidecars, "$", "role", role, "roles", strings.Join(roles, ", "))
		}
	}
}

// checkSidecar checks one container of the mesh.
func checkSidecar(t *task, i int, c *taskdef.Container) {
	at := fmt.Sprintf("$.containerDefinitions[%d]", i)
	checkMounts(t, at, c)
	checkArchitecture(t, at, c.Image)
	if roleOf(c.Name) == roleProxy {
		checkLogs(t, at, c)
	}
	checkWrittenRoot(t, at, c)
	if !t.transparent() {
		return
	}
	// Only root writes the rules that redirect traffic, and they leave out the other two users.
	want := map[string]string{roleMeshInit: "0", roleProxy: "5995", roleHealthSync: "5996"}[roleOf(c.Name)]
	if uid, _, _ := strings.Cut(c.User, ":"); want != "" && uid != want {
		t.add(codeSidecarUser, at+".user", "user", c.User, "container", c.Name, "want", want)
	}
}

// checkWrittenRoot finds a mesh-init that cannot write the names of upstreams or of the resolver: Docker
// makes the files of a container's network read-only with its root file system.
func checkWrittenRoot(t *task, at string, c *taskdef.Container) {
	writes := t.cfg.Proxy.NamedUpstreams || t.transparent() && t.cfg.TransparentProxy.ConsulDNS.Enabled
	if writes && roleOf(c.Name) == roleMeshInit && taskdef.Or(c.ReadonlyRootFilesystem, false) {
		t.add(codeConfig, at+".readonlyRootFilesystem", "path", "$.admission.sidecars", "message",
			"with readonlyRootFilesystem mesh-init cannot write /etc/hosts and /etc/resolv.conf, and the task would not start; set it to false for meshInit")
	}
}

// checkLogs finds a log driver that stops a proxy when its logs are not taken.
func checkLogs(t *task, at string, c *taskdef.Container) {
	if l := c.LogConfiguration; l != nil && l.Options["mode"] == "blocking" {
		t.add(codeLogBlock, at+".logConfiguration.options.mode", "container", c.Name)
	}
}

// checkCPU warns when the applications reserve the whole CPU of the task, and the proxy none.
func checkCPU(t *task) {
	total, known := t.doc.Definition.CPUUnits()
	taken, proxy := 0, t.proxyContainer()
	for _, c := range t.doc.Definition.ContainerDefinitions {
		cpu := taskdef.Or(c.CPU, 0)
		switch {
		case c.Name == proxy && cpu > 0:
			return
		case !workload.Owned(c.Name):
			taken += cpu
		}
	}
	if left := total - taken; known && left >= 0 && left < proxyCPU {
		t.add(codeCPU, "$.cpu", "taken", taken, "cpu", total, "proxy", proxy)
	}
}

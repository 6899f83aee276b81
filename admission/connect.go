package admission

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// volumeName is that of the volume that all containers of the mesh share.
const volumeName = "consul_data"

// connect puts the task into the mesh: the shared volume, the containers of the mesh,
// and each application behind them.
func connect(t *task) {
	def := t.doc.Definition
	if containers := t.get(t.doc.Task, "containerDefinitions"); containers.IsObject() {
		t.add(codeContainers, "$.containerDefinitions", "what", "containerDefinitions")
		return
	} else if !containers.IsList() {
		return // ECS refuses the definition
	}
	if def.RuntimePlatform.IsWindows() {
		t.add(codeOS, "$.runtimePlatform.operatingSystemFamily", "os", def.RuntimePlatform.OperatingSystemFamily)
		return
	}
	if slices.Contains(def.RequiresCompatibilities, launchExternal) {
		t.add(codeExternal, "$.requiresCompatibilities")
		return
	}
	only := t.onlyNative()
	t.labelNative(only)
	if only {
		t.place(nil)
		return
	}
	if t.configure(); t.cfg == nil {
		return
	}
	t.checkFormer()
	t.shareVolume()
	t.reportComputed()
	t.attachAll()
	if i := t.userProxy(); i >= 0 {
		t.completeProxy(i)
	}
	t.pinAll()
	t.place(t.sidecars())
}

// reportComputed names the containers that only CloudFormation knows, and what of the
// others is missing.
func (t *task) reportComputed() {
	applications := t.applications()
	for i, c := range t.doc.Definition.ContainerDefinitions {
		at := fmt.Sprintf("$.containerDefinitions[%d]", i)
		application := slices.Contains(applications, i)
		if t.doc.IsUnknown(at+".stopTimeout") && application {
			t.add(codeComputed, at+".stopTimeout", "what", "the stop timeout of this container",
				"consequence", fmt.Sprintf("the containers of the mesh have %d s to stop", t.stopTimeout()))
		}
		if health := at + ".healthCheck"; application && !c.HealthCheck.Enabled() && (t.doc.IsUnknown(health) || t.doc.IsUnknown(health+".command")) {
			t.add(codeComputed, health, "what", "the health check of this container",
				"consequence", "its result is not sent to Consul")
		}
		switch {
		case c.Name != "" || t.format != formatTemplate:
		case !t.isContainer(i):
			t.add(codeComputed, fmt.Sprintf("$.containerDefinitions[%d]", i), "what", "this container", "consequence", "it is not put behind the proxy")
		case c.HealthCheck.Enabled():
			t.add(codeComputed, fmt.Sprintf("$.containerDefinitions[%d].name", i), "what", "the name of this container", "consequence", "the result of its health check is not sent to Consul")
		}
	}
}

// shareVolume declares the volume of the mesh.
func (t *task) shareVolume() {
	if !t.whole() {
		t.volumes = append(t.volumes, volumeName)
		t.add(codeVolumeTask, "$", "volume", volumeName)
		return
	}
	volumes := t.lists(t.doc.Task, "volumes")
	if volumes == nil {
		t.add(codeComputed, "$.volumes", "what", "volumes", "consequence", "declare the volume "+volumeName+" there")
	}
	at := slices.IndexFunc(t.doc.Definition.Volumes, func(v taskdef.Volume) bool { return v.Name == volumeName })
	if at >= 0 {
		if v := t.doc.Definition.Volumes[at]; v.EFS != nil || v.S3Files != nil || v.FSxWindows != nil || v.ConfiguredAtLaunch != nil || v.Docker != nil || v.Host != nil && v.Host.SourcePath != "" {
			t.add(codeVolumeOwn, fmt.Sprintf("$.volumes[%d]", at), "volume", volumeName)
		}
	}
	for _, list := range volumes {
		if slices.ContainsFunc(list.Items(), func(v *taskdef.Node) bool { return t.text(v, "name") == volumeName }) {
			continue
		}
		list.Append(t.node(taskdef.Volume{Name: volumeName}))
	}
}

// place puts the containers of the mesh into the list: over those of the same name,
// else at the end. Others of the mesh are removed.
func (t *task) place(wanted []*taskdef.Container) {
	list := t.get(t.doc.Task, "containerDefinitions")
	logs := t.logConfiguration()
	made := map[string]*taskdef.Node{}
	for _, c := range wanted {
		c.Image = t.pinned(c.Image)
		made[c.Name] = t.node(c)
		if logs != nil && c.LogConfiguration == nil {
			t.set(made[c.Name], "logConfiguration", logs)
		}
		t.sealSidecar(made[c.Name])
	}
	var placed []*taskdef.Node
	for i, n := range list.Items() {
		c := t.doc.Definition.ContainerDefinitions[i]
		if !workload.IsMeshContainer(c.Name) || isUserProxy(c) {
			placed = append(placed, n)
			continue
		}
		if !madeHere(c) {
			code := codeName
			if t.inMesh() {
				code = codeReplaced
			}
			t.add(code, fmt.Sprintf("$.containerDefinitions[%d]", i), "container", c.Name)
		}
		if made[c.Name] != nil {
			if _, known := t.former[c.Name]; !known {
				t.former[c.Name] = former{c, n}
			}
			placed = append(placed, t.keepFormer(made[c.Name], t.former[c.Name]))
			delete(made, c.Name)
		} else if madeHere(c) {
			t.add(codeDropped, fmt.Sprintf("$.containerDefinitions[%d]", i),
				"what", "container "+c.Name+" of an earlier admission is removed: this task does not get it any more")
		}
	}
	for _, c := range wanted {
		if made[c.Name] != nil {
			placed = append(placed, made[c.Name])
		}
	}
	list.SetItems(placed)
}

// inMesh reports whether the definition as it was read is one of a mesh already, of admission
// or of another program: it has mesh-init, or a container mounts the shared volume.
func (t *task) inMesh() bool {
	shared := func(m taskdef.MountPoint) bool { return m.SourceVolume == volumeName }
	return slices.ContainsFunc(t.doc.Definition.ContainerDefinitions, func(c taskdef.Container) bool {
		return c.Name == workload.ContainerMeshInit || slices.ContainsFunc(c.MountPoints, shared)
	})
}

// logConfiguration is that of the mesh file, else of the first essential application
// that has one; nil without any.
func (t *task) logConfiguration() *taskdef.Node {
	if logs := t.mesh.settings.LogConfiguration; logs != nil {
		n := taskdef.NewNode(logs)
		t.doc.Spell(n)
		return n
	}
	serving, collectors := t.essentials()
	for _, i := range append(serving, collectors...) {
		if n := t.containers()[i]; !t.absent(n, "logConfiguration") {
			t.add(codeLogs, fmt.Sprintf("$.containerDefinitions[%d].logConfiguration", i),
				"what", "log as container "+t.containerName(i)+" does")
			return t.ownLines(t.get(n, "logConfiguration"))
		}
	}
	if len(serving) > 0 {
		t.add(codeLogs, fmt.Sprintf("$.containerDefinitions[%d]", serving[0]),
			"what", "have no logConfiguration, as no essential application has one")
	}
	return nil
}

// ownLines returns a log configuration without the options by which an application's lines are
// joined: those of the mesh's containers would be joined as well.
func (t *task) ownLines(logs *taskdef.Node) *taskdef.Node {
	logs = taskdef.NewNode(logs)
	if options := t.get(logs, "options"); options.IsObject() {
		options.Delete("awslogs-multiline-pattern")
		options.Delete("awslogs-datetime-format")
	}
	return logs
}

// attachAll puts the applications behind the proxy.
func (t *task) attachAll() {
	apps, own := t.applications(), t.userProxy()
	for i, c := range t.doc.Definition.ContainerDefinitions {
		switch {
		case t.cfg.Gateway == nil && slices.Contains(apps, i):
			t.attach(i)
		case t.isContainer(i) && !workload.IsMeshContainer(c.Name) && i != own: // see completeProxy
			t.reportFirst(i)
			t.correctEdges(i)
		}
	}
}

// attach puts an application behind the proxy: wrapped, it waits for the proxy itself.
func (t *task) attach(i int) {
	n := t.containers()[i]
	wrapped := t.wrap(i, n)
	if !t.listed(n, "dependsOn") {
		t.add(codeComputed, fmt.Sprintf("$.containerDefinitions[%d].dependsOn", i), "what", "dependsOn", "consequence", "the container does not wait for the proxy")
	}
	if !wrapped {
		t.order(n, taskdef.Dependency{ContainerName: t.proxyContainer(), Condition: taskdef.ConditionHealthy})
		return
	}
	t.order(n, t.afterGate())
	t.mount(n)
	t.allowStart(i, n)
}

// reportFirst reports a container that starts before the proxy, though no annotation asks for it.
func (t *task) reportFirst(i int) {
	c, name := t.doc.Definition.ContainerDefinitions[i], t.containerName(i)
	at := fmt.Sprintf("$.containerDefinitions[%d]", i)
	switch {
	case t.cfg.Gateway != nil || t.notes.exempt[name] || t.notes.native[name]:
	case t.isReceiver(i):
		t.add(codeFirst, at, "container", name, "why", "it obtains the application's token")
	case c.FirelensConfiguration != nil:
		t.add(codeFirst, at, "container", name, "why", "it routes the logs of the others")
	case t.beforeProxy()[i]:
		t.add(codeFirst, at, "container", name, "why", "the log router or the proxy waits for it")
	}
}

// order removes the edges to containers of the mesh, which are those of an earlier
// admission or of the shape with several gates, and adds one, which an
// earlier admission may have made already.
func (t *task) order(n *taskdef.Node, after taskdef.Dependency) {
	for _, list := range t.lists(n, "dependsOn") {
		edges := slices.DeleteFunc(slices.Clone(list.Items()), func(e *taskdef.Node) bool {
			name := t.text(e, "containerName")
			return workload.IsMeshContainer(name) || name == after.ContainerName && t.text(e, "condition") == after.Condition
		})
		list.SetItems(append(edges, t.node(after)))
	}
}

// correctEdges makes the edges of a container that is no application, which another mesh
// file or program may have made, lead to the containers that this task gets.
func (t *task) correctEdges(i int) {
	list := t.get(t.containers()[i], "dependsOn")
	corrected := func(what string) {
		t.add(codeDropped, fmt.Sprintf("$.containerDefinitions[%d].dependsOn", i),
			"what", "container "+t.containerName(i)+" "+what)
	}
	if !slices.ContainsFunc(list.Items(), func(e *taskdef.Node) bool { return workload.IsMeshContainer(t.text(e, "containerName")) }) {
		return
	}
	var edges []*taskdef.Node
	made := t.sidecars()
	for _, e := range list.Items() {
		name := t.text(e, "containerName")
		is := func(c *taskdef.Container) bool { return c.Name == name }
		switch {
		case !workload.IsMeshContainer(name) || slices.ContainsFunc(made, is):
			edges = append(edges, e)
		case name == workload.ContainerSidecarProxy || name == workload.ContainerDataplane:
			corrected("waits for " + t.proxyContainer() + " in place of " + name + ", which this task does not get")
			t.set(e, "containerName", t.proxyContainer())
			edges = append(edges, e)
		default:
			corrected("does not wait for " + name + " any more, which this task does not get")
		}
	}
	if len(edges) < len(list.Items()) {
		list.SetItems(edges)
	}
}

// proxyContainer is the name of the container of the proxy, ours or the definition's own.
func (t *task) proxyContainer() string {
	if i := t.userProxy(); i >= 0 {
		return t.doc.Definition.ContainerDefinitions[i].Name
	}
	return t.proxyName()
}

// mount mounts the shared volume, which has the program that wraps the application.
func (t *task) mount(n *taskdef.Node) {
	for _, list := range t.lists(n, "mountPoints") {
		if slices.ContainsFunc(list.Items(), func(m *taskdef.Node) bool { return path.Clean(t.text(m, "containerPath")) == t.cfg.BootstrapDir }) {
			continue
		}
		list.Append(t.node(t.mountPoint(true)))
	}
}

// unmount takes away the mount of the shared volume that an earlier admission gave a container for its
// app-entrypoint, unless the container names a file there.
func (t *task) unmount(n *taskdef.Node) {
	for _, key := range []string{"entryPoint", "command", "environment", "healthCheck"} {
		if member := t.get(n, key); member != nil && strings.Contains(string(member.JSON()), t.cfg.BootstrapDir+"/") {
			return
		}
	}
	ours := func(m *taskdef.Node) bool {
		readOnly := t.get(m, "readOnly")
		return t.text(m, "sourceVolume") == volumeName && t.text(m, "containerPath") == t.cfg.BootstrapDir && readOnly != nil && string(readOnly.JSON()) == "true"
	}
	for _, list := range t.lists(n, "mountPoints") {
		list.SetItems(slices.DeleteFunc(slices.Clone(list.Items()), ours))
	}
	if list := t.get(n, "mountPoints"); list.IsList() && len(list.Items()) == 0 {
		n.Delete(t.doc.Key("mountPoints"))
	}
}

// mountPoint is where the containers of the mesh have the shared volume.
func (t *task) mountPoint(readOnly bool) taskdef.MountPoint {
	m := taskdef.MountPoint{SourceVolume: volumeName, ContainerPath: t.cfg.BootstrapDir}
	if readOnly {
		m.ReadOnly = new(true)
	}
	return m
}

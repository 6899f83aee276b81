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

// volumeName is that of the volume that all containers of the mesh share.
const volumeName = "consul_data"

// connect puts the task into the mesh: the shared volume, the containers of the mesh,
// and each application behind them.
func connect(t *task) {
	def := t.doc.Definition
	if containers := t.doc.get(t.doc.Task, "containerDefinitions"); containers.IsObject() {
		t.doc.report(codeContainers, "$.containerDefinitions", "what", "containerDefinitions")
		return
	} else if !containers.IsList() {
		return // ECS refuses the definition
	}
	if def.RuntimePlatform.IsWindows() {
		t.doc.report(codeOS, "$.runtimePlatform.operatingSystemFamily", "os", def.RuntimePlatform.OperatingSystemFamily)
		return
	}
	if slices.Contains(def.RequiresCompatibilities, launchExternal) {
		t.doc.report(codeExternal, "$.requiresCompatibilities")
		return
	}
	only := t.containers.onlyNative()
	t.containers.labelNative(only)
	if only {
		t.injector().replaceSidecars(nil)
		return
	}
	if t.cfg, t.configuration = t.configurer().configure(); t.cfg == nil {
		return
	}
	checkIdentity(t)
	in := t.injector()
	if !t.doc.isFullDefinition() {
		t.volumes = append(t.volumes, volumeName)
	}
	in.shareVolume()
	in.reportComputed()
	in.attachAll()
	if i := t.doc.userProxy(); i >= 0 {
		in.completeProxy(i)
	}
	t.images.pinAll()
	in.replaceSidecars(in.sidecars.all())
}

// injector changes a definition so that it becomes one of the mesh.
type injector struct {
	doc        *document
	containers *containers
	cfg        *config.Config
	sidecars   sidecarBuilder
	// existing are the containers of the mesh as they were read, by their names.
	existing map[string]existingContainer
}

func (t *task) injector() injector {
	return injector{doc: t.doc, containers: t.containers, cfg: t.cfg, sidecars: t.sidecarBuilder(),
		existing: t.existing}
}

// reportComputed names the containers that only CloudFormation knows, and what of the
// others is missing.
func (in injector) reportComputed() {
	applications := in.containers.applications()
	for i, c := range in.doc.Definition.ContainerDefinitions {
		at := fmt.Sprintf("$.containerDefinitions[%d]", i)
		application := slices.Contains(applications, i)
		if in.doc.IsUnknown(at+".stopTimeout") && application {
			in.doc.report(codeComputed, at+".stopTimeout", "what", "the stop timeout of this container",
				"consequence", fmt.Sprintf("the containers of the mesh have %d s to stop", in.containers.stopTimeout()))
		}
		if health := at + ".healthCheck"; application && !c.HealthCheck.Enabled() &&
			(in.doc.IsUnknown(health) || in.doc.IsUnknown(health+".command")) {
			in.doc.report(codeComputed, health, "what", "the health check of this container",
				"consequence", "its result is not sent to Consul")
		}
		switch {
		case c.Name != "" || in.doc.format != formatTemplate:
		case !in.doc.isContainer(i):
			in.doc.report(codeComputed, fmt.Sprintf("$.containerDefinitions[%d]", i), "what", "this container",
				"consequence", "it is not put behind the proxy")
		case c.HealthCheck.Enabled():
			in.doc.report(codeComputed, fmt.Sprintf("$.containerDefinitions[%d].name", i), "what",
				"the name of this container", "consequence", "the result of its health check is not sent to Consul")
		}
	}
}

// shareVolume declares the volume of the mesh.
func (in injector) shareVolume() {
	if !in.doc.isFullDefinition() {
		in.doc.report(codeVolumeTask, "$", "volume", volumeName)
		return
	}
	volumes := in.doc.lists(in.doc.Task, "volumes")
	if volumes == nil {
		in.doc.report(codeComputed, "$.volumes", "what", "volumes", "consequence", "declare the volume "+volumeName+
			" there")
	}
	at := slices.IndexFunc(in.doc.Definition.Volumes, func(v taskdef.Volume) bool { return v.Name == volumeName })
	if at >= 0 {
		if v := in.doc.Definition.Volumes[at]; v.EFS != nil || v.S3Files != nil || v.FSxWindows != nil ||
			v.ConfiguredAtLaunch != nil || v.Docker != nil || v.Host != nil && v.Host.SourcePath != "" {
			in.doc.report(codeVolumeOwn, fmt.Sprintf("$.volumes[%d]", at), "volume", volumeName)
		}
	}
	for _, list := range volumes {
		if slices.ContainsFunc(list.Items(),
			func(v *taskdef.Node) bool { return in.doc.text(v, "name") == volumeName }) {
			continue
		}
		list.Append(in.doc.node(taskdef.Volume{Name: volumeName}))
	}
}

// replaceSidecars puts the containers of the mesh into the list: over those of the same name,
// else at the end. Others of the mesh are removed.
func (in injector) replaceSidecars(wanted []*taskdef.Container) {
	containers := in.doc.get(in.doc.Task, "containerDefinitions")
	logs := in.logConfiguration()
	made := map[string]*taskdef.Node{}
	for _, c := range wanted {
		c.Image = in.containers.images.pin(c.Image)
		made[c.Name] = in.doc.node(c)
		if logs != nil && c.LogConfiguration == nil {
			in.doc.set(made[c.Name], "logConfiguration", logs)
		}
		sealSidecar(in.doc, made[c.Name])
	}
	var all []*taskdef.Node
	for i, n := range containers.Items() {
		c := in.doc.Definition.ContainerDefinitions[i]
		if !workload.IsMeshContainer(c.Name) || isUserProxy(c) {
			all = append(all, n)
			continue
		}
		if !madeHere(c) {
			code := codeName
			if isInMesh(in.doc) {
				code = codeReplaced
			}
			in.doc.report(code, fmt.Sprintf("$.containerDefinitions[%d]", i), "container", c.Name)
		}
		if made[c.Name] != nil {
			if _, known := in.existing[c.Name]; !known {
				in.existing[c.Name] = existingContainer{c, n}
			}
			all = append(all, in.reuse(made[c.Name], in.existing[c.Name]))
			delete(made, c.Name)
		} else if madeHere(c) {
			in.doc.report(codeDropped, fmt.Sprintf("$.containerDefinitions[%d]", i),
				"what", "container "+c.Name+" of an earlier admission is removed: this task does not get it any more")
		}
	}
	for _, c := range wanted {
		if made[c.Name] != nil {
			all = append(all, made[c.Name])
		}
	}
	containers.SetItems(all)
}

// isInMesh reports whether the definition as it was read is one of a mesh already, of admission
// or of another program: it has mesh-init, or a container mounts the shared volume.
func isInMesh(d *document) bool {
	shared := func(m taskdef.MountPoint) bool { return m.SourceVolume == volumeName }
	return slices.ContainsFunc(d.Definition.ContainerDefinitions, func(c taskdef.Container) bool {
		return c.Name == workload.ContainerMeshInit || slices.ContainsFunc(c.MountPoints, shared)
	})
}

// logConfiguration returns that of the mesh file, else of the first essential application that has one; nil
// without any.
func (in injector) logConfiguration() *taskdef.Node {
	if logs := in.sidecars.mesh.settings.LogConfiguration; logs != nil {
		n := taskdef.NewNode(logs)
		in.doc.Spell(n)
		return n
	}
	serving, collectors := in.containers.essentials()
	for _, i := range append(serving, collectors...) {
		if n := in.doc.containers()[i]; !in.doc.isAbsent(n, "logConfiguration") {
			in.doc.report(codeLogs, fmt.Sprintf("$.containerDefinitions[%d].logConfiguration", i),
				"what", "log as container "+in.doc.containerName(i)+" does")
			return ownLines(in.doc, in.doc.get(n, "logConfiguration"))
		}
	}
	if len(serving) > 0 {
		in.doc.report(codeLogs, fmt.Sprintf("$.containerDefinitions[%d]", serving[0]),
			"what", "have no logConfiguration, as no essential application has one")
	}
	return nil
}

// ownLines returns a log configuration without the options by which an application's lines are
// joined: those of the mesh's containers would be joined as well.
func ownLines(d *document, logs *taskdef.Node) *taskdef.Node {
	logs = taskdef.NewNode(logs)
	if options := d.get(logs, "options"); options.IsObject() {
		options.Delete("awslogs-multiline-pattern")
		options.Delete("awslogs-datetime-format")
	}
	return logs
}

// attachAll puts the applications behind the proxy.
func (in injector) attachAll() {
	apps, own := in.containers.applications(), in.doc.userProxy()
	for i, c := range in.doc.Definition.ContainerDefinitions {
		switch {
		case in.cfg.Gateway == nil && slices.Contains(apps, i):
			in.attach(i)
		case in.doc.isContainer(i) && !workload.IsMeshContainer(c.Name) && i != own: // see completeProxy
			in.reportFirst(i)
			in.correctDependencies(i)
		}
	}
}

// attach puts an application behind the proxy: wrapped, it waits for the proxy itself.
func (in injector) attach(i int) {
	n := in.doc.containers()[i]
	wrapped := lineWriter{doc: in.doc, containers: in.containers, cfg: in.cfg}.wrap(i, n)
	if !in.doc.isListed(n, "dependsOn") {
		in.doc.report(codeComputed, fmt.Sprintf("$.containerDefinitions[%d].dependsOn", i), "what", "dependsOn",
			"consequence", "the container does not wait for the proxy")
	}
	if !wrapped {
		setDependency(in.doc, n, taskdef.Dependency{ContainerName: proxyContainer(in.doc, in.cfg),
			Condition: taskdef.ConditionHealthy})
		return
	}
	setDependency(in.doc, n, gate(in.cfg))
	mountVolume(in.doc, n, in.cfg.BootstrapDir)
	allowStart(in.doc, i, n)
}

// reportFirst reports a container that starts before the proxy, though no annotation asks for it.
func (in injector) reportFirst(i int) {
	c, name := in.doc.Definition.ContainerDefinitions[i], in.doc.containerName(i)
	at := fmt.Sprintf("$.containerDefinitions[%d]", i)
	switch {
	case in.cfg.Gateway != nil || in.containers.annotations.exempt[name] || in.containers.annotations.native[name]:
	case in.doc.isReceiver(i):
		in.doc.report(codeFirst, at, "container", name, "why", "it obtains the application's token")
	case c.FirelensConfiguration != nil:
		in.doc.report(codeFirst, at, "container", name, "why", "it routes the logs of the others")
	case in.containers.beforeProxy()[i]:
		in.doc.report(codeFirst, at, "container", name, "why", "the log router or the proxy waits for it")
	}
}

// setDependency removes the edges to containers of the mesh, which are those of an earlier
// admission or of the shape with several gates, and adds one, which an
// earlier admission may have made already.
func setDependency(d *document, n *taskdef.Node, after taskdef.Dependency) {
	for _, list := range d.lists(n, "dependsOn") {
		edges := slices.DeleteFunc(slices.Clone(list.Items()), func(e *taskdef.Node) bool {
			name := d.text(e, "containerName")
			return workload.IsMeshContainer(name) || name == after.ContainerName &&
				d.text(e, "condition") == after.Condition
		})
		list.SetItems(append(edges, d.node(after)))
	}
}

// correctDependencies makes the edges of a container that is no application, which another mesh
// file or program may have made, lead to the containers that this task gets.
func (in injector) correctDependencies(i int) {
	list := in.doc.get(in.doc.containers()[i], "dependsOn")
	corrected := func(what string) {
		in.doc.report(codeDropped, fmt.Sprintf("$.containerDefinitions[%d].dependsOn", i),
			"what", "container "+in.doc.containerName(i)+" "+what)
	}
	if !slices.ContainsFunc(list.Items(),
		func(e *taskdef.Node) bool { return workload.IsMeshContainer(in.doc.text(e, "containerName")) }) {
		return
	}
	var edges []*taskdef.Node
	made := in.sidecars.all()
	for _, e := range list.Items() {
		name := in.doc.text(e, "containerName")
		is := func(c *taskdef.Container) bool { return c.Name == name }
		switch {
		case !workload.IsMeshContainer(name) || slices.ContainsFunc(made, is):
			edges = append(edges, e)
		case name == workload.ContainerSidecarProxy || name == workload.ContainerDataplane:
			corrected("waits for " + proxyContainer(in.doc, in.cfg) + " in place of " + name +
				", which this task does not get")
			in.doc.set(e, "containerName", proxyContainer(in.doc, in.cfg))
			edges = append(edges, e)
		default:
			corrected("does not wait for " + name + " any more, which this task does not get")
		}
	}
	if len(edges) < len(list.Items()) {
		list.SetItems(edges)
	}
}

// proxyContainer returns the name of the container of the proxy, ours or the definition's own.
func proxyContainer(d *document, cfg *config.Config) string {
	if i := d.userProxy(); i >= 0 {
		return d.Definition.ContainerDefinitions[i].Name
	}
	return proxyName(cfg)
}

// mountVolume mounts the shared volume, which has the program that wraps the application.
func mountVolume(d *document, n *taskdef.Node, dir string) {
	for _, list := range d.lists(n, "mountPoints") {
		if slices.ContainsFunc(list.Items(),
			func(m *taskdef.Node) bool { return path.Clean(d.text(m, "containerPath")) == dir }) {
			continue
		}
		list.Append(d.node(mountPoint(dir, true)))
	}
}

// unmountVolume takes away the mount of the shared volume that an earlier admission gave a container for its
// app-entrypoint, unless the container names a file there.
func unmountVolume(d *document, n *taskdef.Node, dir string) {
	for _, key := range []string{"entryPoint", "command", "environment", "healthCheck"} {
		if member := d.get(n, key); member != nil && strings.Contains(string(member.JSON()), dir+"/") {
			return
		}
	}
	ours := func(m *taskdef.Node) bool {
		readOnly := d.get(m, "readOnly")
		return d.text(m, "sourceVolume") == volumeName && d.text(m, "containerPath") == dir && readOnly != nil &&
			string(readOnly.JSON()) == "true"
	}
	for _, list := range d.lists(n, "mountPoints") {
		list.SetItems(slices.DeleteFunc(slices.Clone(list.Items()), ours))
	}
	if list := d.get(n, "mountPoints"); list.IsList() && len(list.Items()) == 0 {
		n.Delete(d.Key("mountPoints"))
	}
}

// mountPoint returns the mount of the shared volume.
func mountPoint(dir string, readOnly bool) taskdef.MountPoint {
	m := taskdef.MountPoint{SourceVolume: volumeName, ContainerPath: dir}
	if readOnly {
		m.ReadOnly = new(true)
	}
	return m
}

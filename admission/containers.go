package admission

import (
	"flag"
	"slices"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// containers reports which containers of a definition are applications, and which must start before the proxy.
type containers struct {
	doc         *document
	annotations *annotations
	images      *lockedImages
	// flags makes the flags of a command of consul-ecs; nil to check none.
	flags func(command string) *flag.FlagSet
}

// applications returns the indexes of the containers that the mesh is for: neither its own ones nor computed
// ones, nor named as AWS's own, nor what starts before the proxy, nor those with the annotation
// depends=false, nor native ones, nor the definition's own proxy, nor token-receive, which an application may
// wait for.
func (cs *containers) applications() []int {
	before := cs.beforeProxy()
	var found []int
	for i, c := range cs.doc.Definition.ContainerDefinitions {
		ours := !cs.doc.isContainer(i) || workload.IsMeshContainer(c.Name) || workload.IsAWSContainer(c.Name) ||
			isUserProxy(c) || cs.doc.isReceiver(i)
		name := cs.doc.containerName(i)
		if !ours && !before[i] && !cs.annotations.exempt[name] && !cs.annotations.native[name] {
			found = append(found, i)
		}
	}
	return found
}

// beforeProxy returns the containers that must not wait for the proxy: what the injected containers log
// through, and what that or the definition's own proxy depends on.
func (cs *containers) beforeProxy() map[int]bool {
	containers := cs.doc.Definition.ContainerDefinitions
	before := map[int]bool{}
	// visit follows dependsOn. A wrapped container may wait although the proxy depends on its
	// START: it has started.
	var visit func(i int, must bool)
	visit = func(i int, must bool) {
		if known, visited := before[i]; visited && (known || !must) {
			return
		}
		before[i] = must
		for _, d := range containers[i].DependsOn {
			at := slices.IndexFunc(containers, func(c taskdef.Container) bool { return c.Name == d.ContainerName })
			if at >= 0 && !workload.IsMeshContainer(d.ContainerName) {
				visit(at, must || d.Condition != taskdef.ConditionStart || !cs.line(at).decide().wrap)
			}
		}
	}
	for i, c := range containers {
		if c.FirelensConfiguration != nil || isUserProxy(c) {
			visit(i, c.FirelensConfiguration != nil)
		}
	}
	return before
}

// firstEssential returns the index of the first essential application, -1 without one.
func (cs *containers) firstEssential() int {
	for _, i := range cs.applications() {
		if cs.doc.Definition.ContainerDefinitions[i].IsEssential() {
			return i
		}
	}
	return -1
}

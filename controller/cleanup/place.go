package cleanup

import "regexp"

// Tags of ECS tasks in the mesh.
const (
	tagMesh      = "consul.hashicorp.com/mesh"
	tagPartition = "consul.hashicorp.com/partition"
	tagNamespace = "consul.hashicorp.com/namespace"
)

// defaultName is the partition, and the namespace, of tasks without tags.
const defaultName = "default"

// What is wrong with a task's tags, for the log.
const (
	// halfPlace leaves open where the task is to be.
	halfPlace = "task has one of the tags for partition and namespace, and needs both"
	// badName would be refused by Consul, at each pass anew.
	badName = "task's tag names a namespace that Consul cannot have: want at most 63 letters, digits and hyphens, not at its ends"
)

// hostLabel is what a namespace may be called (Consul Enterprise, namespaces).
var hostLabel = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)

// namespace is the one that a task's tags name in the partition; empty if the
// task is none of its, or with what is wrong.
func namespace(tags map[string]string, partition string) (name, wrong string) {
	if tags[tagMesh] != "true" {
		return "", ""
	}
	p, hasPartition := tags[tagPartition]
	n, hasNamespace := tags[tagNamespace]
	switch {
	case hasPartition != hasNamespace:
		return "", halfPlace
	case !hasPartition:
		p, n = defaultName, defaultName
	}
	switch {
	case p != partition:
		return "", ""
	case n != "" && !hostLabel.MatchString(n):
		return "", badName
	}
	return n, ""
}

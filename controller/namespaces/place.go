package namespaces

// Tags of ECS tasks in the mesh.
const (
	tagMesh      = "consul.hashicorp.com/mesh"
	tagPartition = "consul.hashicorp.com/partition"
	tagNamespace = "consul.hashicorp.com/namespace"
)

// defaultName is the partition, and the namespace, of tasks without tags.
const defaultName = "default"

// namespace is the one that a task's tags name in the partition; empty if the
// task is none of its. half says that one of two tags is missing, which leaves
// open where the task is to be.
func namespace(tags map[string]string, partition string) (name string, half bool) {
	if tags[tagMesh] != "true" {
		return "", false
	}
	p, hasPartition := tags[tagPartition]
	n, hasNamespace := tags[tagNamespace]
	switch {
	case hasPartition != hasNamespace:
		return "", true
	case !hasPartition:
		p, n = defaultName, defaultName
	}
	if p != partition {
		return "", false
	}
	return n, false
}

package taskdef

import "strings"

// NormalizeImage returns the full form of an image reference, by Docker's rules: "nginx" is
// "docker.io/library/nginx:latest". A digest replaces the tag beside it, as it decides which
// image is pulled.
func NormalizeImage(reference string) string {
	repository, tag, digest := splitImage(reference)
	if digest != "" {
		return repository + "@" + digest
	}
	return repository + ":" + tag
}

// PinImage returns a reference by digest that keeps the name as it is written, and the tag
// for a reader.
func PinImage(reference, digest string) string {
	name, _, _ := strings.Cut(reference, "@")
	return name + "@" + digest
}

// splitImage returns the parts of a reference: the repository in its full form, and the tag,
// "latest" when there is none.
func splitImage(reference string) (repository, tag, digest string) {
	name, digest, _ := strings.Cut(reference, "@")
	tag = "latest"
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name, tag = name[:colon], name[colon+1:]
	}
	return fullRepository(name), tag, digest
}

// fullRepository adds the registry, and Docker Hub's namespace of official images.
func fullRepository(name string) string {
	registry, path, found := strings.Cut(name, "/")
	if !found || !strings.ContainsAny(registry, ".:") && registry != "localhost" {
		registry, path = "docker.io", name
	}
	if registry == "index.docker.io" {
		registry = "docker.io"
	}
	if registry == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return registry + "/" + path
}

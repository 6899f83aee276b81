package admission

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// Codes of findings about the images in a lock.
const (
	codeArchLocked  = "ADM-ARCH-IMAGE"
	codeImage       = "ADM-IMAGE"
	codeImageHealth = "ADM-IMAGE-HEALTH"
	codeStopSignal  = "ADM-STOPSIGNAL"
)

// imageCodes returns the rules about the images in a lock, sorted by code.
func imageCodes() []Code {
	return []Code{
		{codeArchLocked, taskdef.Error, "the image {image} has no {arch}, on which the task runs: it has {platforms}",
			"take an image of that architecture, or one for several, and lock it again"},
		{codeImage, taskdef.Warn, "the image {image} of container {container} {why}", "{fix}"},
		{codeImageHealth, Info, "ECS does not run the HEALTHCHECK of the image of container {container}",
			"write it as healthCheck"},
		{codeStopSignal, taskdef.Warn, "the image of container {container} has the STOPSIGNAL {signal}, which " +
			"app-entrypoint does not hold back: the application gets it while callers may still send requests",
			"take an image with another one, or set the label " + annotationWrap + " to false"},
	}
}

// lockedImages are the images of a definition as a lock has them.
type lockedImages struct {
	doc *document
	// lock is nil without one, and pinned is true when images are named by their digests.
	lock   *taskdef.ImageLock
	pinned bool
}

// find returns the image of a container in the lock, and its reference: of an image that an
// earlier admission pinned, that of the tag. It is false without a lock, and for a reference
// that is known at deployment only.
func (l *lockedImages) find(i int) (image taskdef.LockedImage, reference string, found bool) {
	n := l.doc.containers()[i]
	reference, known := l.doc.get(n, "image").Text()
	if !known || l.doc.IsUnknown(fmt.Sprintf("$.containerDefinitions[%d].image", i)) {
		return image, "", false
	}
	if l.doc.record(n).image {
		reference, _, _ = strings.Cut(reference, "@")
	}
	image, found = l.lock.Find(reference)
	return image, reference, found
}

// config returns the configuration of a container's image, and false when the lock does
// not have it, or has several and the definition leaves the architecture open.
func (l *lockedImages) config(i int) (taskdef.ImageConfig, bool) {
	image, _, found := l.find(i)
	if !found {
		return taskdef.ImageConfig{}, false
	}
	if architecture := architectureOf(l.doc.Document); architecture != "" {
		return image.Config(architecture)
	}
	return commonConfig(image)
}

// commonConfig returns the configuration that all platforms of an image share.
func commonConfig(image taskdef.LockedImage) (config taskdef.ImageConfig, same bool) {
	for i, name := range image.PlatformNames() {
		platform := image.Platforms[name]
		platform.Digest = ""
		if i > 0 && !reflect.DeepEqual(platform, config) {
			return taskdef.ImageConfig{}, false
		}
		config = platform
	}
	return config, true
}

// pinAll names the images of the definition's own containers by the digests of the lock if that is
// asked for, and otherwise as the definition had them: what else is written of an image is that of
// the lock. A digest of the user stays.
func (l *lockedImages) pinAll() {
	for i, c := range l.doc.Definition.ContainerDefinitions {
		image, reference, found := l.find(i)
		n := l.doc.containers()[i]
		r := l.doc.record(n)
		switch {
		case !found || workload.IsMeshContainer(c.Name) && !isUserProxy(c):
			continue
		case l.pinned && !strings.Contains(reference, "@"):
			l.doc.set(n, "image", taskdef.PinImage(reference, image.Digest))
			r.image = canLabel(l.doc, n)
		case r.image:
			l.doc.set(n, "image", reference)
			r.image = false
		}
		l.doc.setRecord(n, r)
	}
}

// pin returns the image of an injected container, by its digest when that is asked for.
func (l *lockedImages) pin(reference string) string {
	image, found := l.lock.Find(reference)
	if !l.pinned || !found || strings.Contains(reference, "@") {
		return reference
	}
	return taskdef.PinImage(reference, image.Digest)
}

// checkImages compares the images of all containers with the lock.
func checkImages(t *task) {
	if t.images.lock == nil {
		return
	}
	architecture := architectureOf(t.doc.Document)
	for i, c := range t.doc.Definition.ContainerDefinitions {
		at := fmt.Sprintf("$.containerDefinitions[%d]", i)
		image, reference, found := t.images.find(i)
		if reference == "" {
			continue
		}
		config, known := t.images.config(i)
		switch {
		case !found:
			t.doc.report(codeImage, at+".image", "image", c.Image, "container", t.doc.containerName(i),
				"why", "is not in the lock",
				"fix", "lock it: consul-ecs images lock, with -config for the images of the mesh")
		case !known && architecture != "":
			t.doc.report(codeArchLocked, at+".image", "image", c.Image, "arch", architecture,
				"platforms", strings.Join(image.PlatformNames(), ", "))
		case !known:
			t.doc.report(codeImage, at+".image", "image", c.Image, "container", t.doc.containerName(i),
				"why", "differs between its architectures", "fix", "set runtimePlatform.cpuArchitecture")
		case !workload.IsMeshContainer(c.Name):
			checkConfig(t.doc, at, c, config)
			checkImageVolumes(t, at, c, config)
		}
	}
}

// checkConfig checks what the image of an own container has.
func checkConfig(d *document, at string, c taskdef.Container, config taskdef.ImageConfig) {
	h := config.Healthcheck
	if h != nil && len(h.Test) > 0 && h.Test[0] != "NONE" && c.HealthCheck == nil && !d.IsUnknown(at+".healthCheck") {
		d.report(codeImageHealth, at+".image", "container", c.Name)
	}
}

// checkImageVolumes finds volumes of an image below the shared volume. Docker cannot make their
// directories there, since an application has it read-only.
func checkImageVolumes(t *task, at string, c taskdef.Container, config taskdef.ImageConfig) {
	if t.cfg == nil || !slices.ContainsFunc(c.MountPoints,
		func(m taskdef.MountPoint) bool { return m.SourceVolume == volumeName }) {
		return
	}
	for _, dir := range config.Volumes {
		if strings.HasPrefix(path.Clean(dir), t.cfg.BootstrapDir+"/") {
			t.doc.report(codeVolume, at+".image", "container", c.Name, "source", "a volume of its image", "path", dir,
				"dir", t.cfg.BootstrapDir,
				"fix", "set its label "+annotationWrap+" to false: it does not mount the shared volume then")
		}
	}
}

// proxyUsers are the users of the mesh's containers, whose traffic is not redirected and whose
// files an application must not read.
var proxyUsers = map[string]string{"5995": "the proxy", "5996": "health-sync"}

// checkUser finds an application that runs as a user of the mesh, by the definition or by
// its image.
func checkUser(t *task, i int, at string, c *taskdef.Container) {
	config, _ := t.images.config(i)
	member := ".user"
	if c.User == "" {
		member = ".image"
	}
	user, _, _ := strings.Cut(cmp.Or(c.User, config.User), ":")
	for _, uid := range slices.Sorted(maps.Keys(proxyUsers)) {
		if user == uid && !t.doc.IsUnknown(at+".user") {
			t.doc.report(codeUser, at+member, "container", c.Name, "user", cmp.Or(c.User, config.User),
				"owner", proxyUsers[uid])
		}
	}
}

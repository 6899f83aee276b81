package admission

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/meshtask/consul-ecs/taskdef"
)

// ImageUse is the image of a container.
type ImageUse struct {
	// Path is the container's image in the document.
	Path string
	// Container is its name, or its index without one.
	Container string
	// Reference is as it is written, or empty when it is known at deployment only.
	Reference string
	// Architecture is the task's, X86_64 or ARM64; empty when the definition leaves it to the
	// instance.
	Architecture string
}

// Images returns the images of all containers that a document has once it is admitted: its
// own and, with Options.Mesh, those that are injected. Without Options.Resource it
// reads all task definitions of a template. Errors are those of Admit.
func Images(doc []byte, o Options) ([]ImageUse, error) {
	resources := []string{o.Resource}
	if cmp.Or(o.Format, detect(doc)) == formatTemplate && o.Resource == "" {
		var err error
		if resources, err = taskdef.TemplateResources(doc); err != nil {
			return nil, err
		}
	}
	var uses []ImageUse
	for _, o.Resource = range resources {
		result, err := Admit(doc, o)
		if err != nil {
			return nil, err
		}
		for _, f := range result.Findings {
			if f.Code == codeNoImage {
				return nil, errors.New(f.Message + ": " + f.Fix)
			}
		}
		uses = append(uses, imagesOf(result.After)...)
	}
	return uses, nil
}

// imagesOf returns the images of a definition.
func imagesOf(d *taskdef.Document) []ImageUse {
	architecture := architectureOf(d)
	const list = "$.containerDefinitions"
	if d.Task.IsComputed() || d.IsUnknown(list) {
		return []ImageUse{{Path: d.Locate(list), Container: "all", Architecture: architecture}}
	}
	var uses []ImageUse
	for i, c := range d.Definition.ContainerDefinitions {
		path := fmt.Sprintf("%s[%d]", list, i)
		use := ImageUse{
			Path:         d.Locate(path + ".image"),
			Container:    cmp.Or(c.Name, strconv.Itoa(i)),
			Reference:    c.Image,
			Architecture: architecture,
		}
		if d.IsUnknown(path) || d.IsUnknown(path+".image") {
			use.Reference = ""
		}
		uses = append(uses, use)
	}
	return uses
}

// architectureOf returns the architecture of a task, empty when the definition does not fix
// one: then an instance of any may be chosen.
func architectureOf(d *taskdef.Document) string {
	platform := d.Definition.RuntimePlatform
	switch {
	case d.IsUnknown("$.runtimePlatform") || d.IsUnknown("$.runtimePlatform.cpuArchitecture"), platform.IsWindows():
		return ""
	case platform != nil && platform.CPUArchitecture != "":
		return platform.CPUArchitecture
	case d.Definition.IsFargate():
		return "X86_64"
	}
	return ""
}

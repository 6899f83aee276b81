package broker

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
)

// registered returns what ECS answers for an admitted definition: with defaults, what it adds, and
// lists in another order. It returns false for a template.
func registered(t *testing.T, file string) (*taskdef.TaskDefinition, bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := taskdef.Parse(text)
	if err != nil || doc.Definition.Family == "" {
		return nil, false
	}
	d := doc.Definition
	d.TaskDefinitionARN, d.Revision, d.Status, d.RegisteredAt = revisionOf, 7, "ACTIVE", 1.7e9
	d.Compatibilities, d.RequiresAttributes = []string{"EC2", "FARGATE"},
		[]taskdef.KeyValue{{Name: "ecs.capability.task-eni"}}
	for _, c := range d.ContainerDefinitions {
		slices.Reverse(c.Environment)
		slices.Reverse(c.Secrets)
	}
	slices.Reverse(d.Tags)
	d.Tags = append(d.Tags, taskdef.Tag{Key: "aws:cloudformation:stack-name", Value: "x"})
	answer, err := definitionText(d)
	if err != nil {
		t.Fatal(err)
	}
	if doc, err = taskdef.Parse(answer); err != nil {
		t.Fatal(err)
	}
	return doc.Definition, true
}

func isSeal(tag taskdef.Tag) bool { return tag.Key == taskdef.SealTag }

// The definitions are those that package admission has admitted in its tests.
func TestAdmittedRevisionIsRecognized(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../admission/testdata/admitted/*.json")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		d, ok := registered(t, file)
		if !ok || !slices.ContainsFunc(d.Tags, isSeal) {
			continue
		}
		checked++
		if !d.Admitted() {
			t.Errorf("%s is not recognized", file)
		}
		c := &d.ContainerDefinitions[0]
		image := c.Image
		c.Image = "evil:1"
		if d.Admitted() {
			t.Errorf("%s with another image is recognized", file)
		}
		c.Image = image
		c.DockerLabels = map[string]string{policiesLabel: "admin"}
		if d.Admitted() {
			t.Errorf("%s with other policies is recognized", file)
		}
	}
	if checked < 10 {
		t.Errorf("%d definitions are checked, want 10", checked)
	}
}

func TestRequirementsOfTheTaskDefinition(t *testing.T) {
	t.Parallel()
	admission, digests := Rules{RequireAdmission: true}, Rules{RequireDigests: true}
	for name, tt := range map[string]struct {
		rules  Rules
		change func(*taskdef.TaskDefinition)
		want   string // the code of the refusal
	}{
		"admitted":         {rules: admission},
		"nothing required": {change: func(d *taskdef.TaskDefinition) { d.Tags = nil }},
		"not admitted": {admission, func(d *taskdef.TaskDefinition) {
			d.Tags = slices.DeleteFunc(d.Tags, isSeal)
		}, "admission"},
		"another tag": {admission, func(d *taskdef.TaskDefinition) {
			d.Tags = append(d.Tags, taskdef.Tag{Key: "team", Value: "x"})
		}, "admission"},
		"changed after the admission": {admission, func(d *taskdef.TaskDefinition) {
			d.ContainerDefinitions[0].Command = []string{"sh"}
		}, "admission"},
		"images by their tags": {digests, nil, "image_digest"},
		"one image by its tag": {digests, func(d *taskdef.TaskDefinition) {
			pin(d)
			d.ContainerDefinitions[1].Image = "a:1"
		}, "image_digest"},
		"images by their digests": {digests, pin, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, w *fixture) {
				d, ok := registered(t, filepath.Join("..", "examples", "admit", "admitted", "web.json"))
				if !ok {
					t.Fatal("the example is no task definition")
				}
				d.ContainerDefinitions[0].DockerLabels = w.ecs.labels
				d.Tags = slices.DeleteFunc(d.Tags, isSeal)
				d.Tags = append(d.Tags, taskdef.Tag{Key: taskdef.SealTag, Value: taskdef.Seal(d.Sealed())})
				if tt.change != nil {
					tt.change(d)
				}
				w.ecs.described = d
				answer := w.task(1).ask()
				if tt.want == "" {
					accepted(t, answer)
					return
				}
				wantRefused(t, answer, http.StatusUnprocessableEntity, tt.want)
				if !strings.Contains(w.audit.String(), `"decision":"rejected","reason":"`) {
					t.Errorf("audit log %s", w.audit)
				}
			}, func(o *Options) {
				o.Rules.RequireAdmission, o.Rules.RequireDigests = tt.rules.RequireAdmission, tt.rules.RequireDigests
			})
		})
	}
}

// ECS accepts values that taskdef.Parse does not: the labels count all the same.
func TestRevisionWithValuesOfTheWrongTypeGetsTokens(t *testing.T) {
	t.Parallel()
	const text = `{"taskDefinition": {"taskDefinitionArn": %q, "cpu": 256, "containerDefinitions": [
		{"name": "app", "image": %s, "dockerLabels": {"consul.hashicorp.com/policies": "app"}}]}, "tags": [%s]}`
	pinned := `"web@sha256:` + strings.Repeat("0", 64) + `"`
	for name, tt := range map[string]struct {
		rules Rules
		image string
		want  string // the code of the refusal
	}{
		"nothing required":    {Rules{}, `"web:1"`, ""},
		"admission":           {Rules{RequireAdmission: true}, pinned, "admission"},
		"digests":             {Rules{RequireDigests: true}, pinned, ""},
		"an image is missing": {Rules{RequireDigests: true}, "1", "image_digest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, w *fixture) {
				read, err := taskdef.Parse(fmt.Appendf(nil, text, revisionOf, tt.image, ""))
				if _, invalid := errors.AsType[*taskdef.InvalidError](err); !invalid {
					t.Fatalf("error %v, want values of the wrong type", err)
				}
				seal := fmt.Sprintf(`{"key": %q, "value": %q}`, taskdef.SealTag, taskdef.Seal(read.Definition.Sealed()))
				w.ecs.text = fmt.Appendf(nil, text, revisionOf, tt.image, seal)
				answer := w.task(1).ask()
				if tt.want == "" {
					accepted(t, answer)
					return
				}
				wantRefused(t, answer, http.StatusUnprocessableEntity, tt.want)
			}, func(o *Options) {
				o.Rules.RequireAdmission, o.Rules.RequireDigests = tt.rules.RequireAdmission, tt.rules.RequireDigests
			})
		})
	}
}

func pin(d *taskdef.TaskDefinition) {
	for i := range d.ContainerDefinitions {
		d.ContainerDefinitions[i].Image = "web@sha256:" + strings.Repeat("0", 64)
	}
}

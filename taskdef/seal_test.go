package taskdef_test

import (
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

// TestSealIgnoresWhatECSAnswers checks that members which DescribeTaskDefinition adds do not break the seal.
func TestSealIgnoresWhatECSAnswers(t *testing.T) {
	t.Parallel()
	seal := func(text string) string {
		d, err := taskdef.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return taskdef.Seal(d.Definition.Sealed())
	}
	const head, tail = `{"family": "web", `, `"containerDefinitions": [{"name": "web", "image": "web:1"}]}`
	registered := seal(head + tail)
	for _, member := range []string{`"enableFaultInjection": false, `, `"status": "ACTIVE", `, `"volumes": [], `} {
		testkit.Equal(t, "seal with "+member, seal(head+member+tail), registered)
	}
	if seal(head+`"enableFaultInjection": true, `+tail) == registered {
		t.Error("fault injection does not change the seal")
	}
}

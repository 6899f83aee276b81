package subcommand

import (
	"testing"

	"github.com/meshtask/consul-ecs/admission"
)

func TestSARIFNamesTheFileByAURI(t *testing.T) {
	t.Parallel()
	r, err := admission.Admit([]byte(`{"family": "app", "containerDefinitions": []}`), admission.Options{})
	if err != nil {
		t.Fatal(err)
	}
	results := sarifOf(r, "ecs/my file%.json", "1.0.0-beta.1", false).Runs[0].Results
	if len(results) == 0 || results[0].Locations[0].Physical.Artifact.URI != "ecs/my%20file%25.json" {
		t.Errorf("results %+v", results)
	}
}

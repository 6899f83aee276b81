package metadata_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// A program that reads the metadata at once finds itself RUNNING in a task that is not.
func TestTaskIsNoneInTheFirstAnswers(t *testing.T) {
	t.Parallel()
	started := time.Date(2026, 3, 2, 17, 8, 53, 0, time.UTC)
	for _, c := range []struct {
		name, desired, known string
		after                time.Duration
		want                 string
	}{
		{"at once", "RUNNING", "RUNNING", 0, "NONE"},
		{"within a second", "RUNNING", "RUNNING", 999 * time.Millisecond, "NONE"},
		{"after a second", "RUNNING", "RUNNING", time.Second, "RUNNING"},
		{"a container waits", "RUNNING", "NONE", time.Hour, "NONE"},
		{"asked to stop at once", "STOPPED", "RUNNING", 0, "RUNNING"},
		{"stopped at once", "STOPPED", "STOPPED", 0, "STOPPED"},
	} {
		view := scheduler.View{
			DesiredStatus: c.desired, KnownStatus: c.known, StartedAt: started,
			Containers: []scheduler.ContainerView{
				{Name: "app", DesiredStatus: c.desired, KnownStatus: "RUNNING", StartedAt: started},
			},
		}
		facts := metadata.Facts{Containers: map[string]metadata.ContainerFacts{"app": {}}}
		text, err := json.Marshal(metadata.At(started.Add(c.after), facts, view).Document())
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			KnownStatus string
			Containers  []struct{ KnownStatus string }
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
		if answer.KnownStatus != c.want {
			t.Errorf("%s: the task is %s, want %s", c.name, answer.KnownStatus, c.want)
		}
		if got := answer.Containers[0].KnownStatus; got != "RUNNING" {
			t.Errorf("%s: the container is %s", c.name, got)
		}
	}
}

package command

import (
	"testing"

	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestChooseContainer(t *testing.T) {
	t.Parallel()
	task := func(containers ...string) control.Task {
		t := control.Task{Name: "web-1", Task: shapes.Task{TaskDefinitionARN: "arn:task-definition/web:1", LastStatus: "RUNNING", DesiredStatus: "RUNNING"}}
		for _, name := range containers {
			status := "RUNNING"
			if name[0] == '-' {
				name, status = name[1:], "STOPPED"
			}
			t.Containers = append(t.Containers, control.Container{Container: shapes.Container{Name: name, LastStatus: status}})
		}
		return t
	}
	for _, tt := range []struct {
		task        control.Task
		name        string
		want, error string
	}{
		{task("app"), "", "app", ""},
		{task("-init", "app"), "", "app", ""},
		{task("web", "proxy"), "", "web", ""},
		{task("web", "proxy"), "proxy", "proxy", ""},
		{task("-web", "proxy", "log"), "", "", "web-1 has several running containers: select one with -container: proxy, log"},
		{task("-web"), "", "", "no container of web-1 is running: RUNNING"},
		{task("-web", "proxy"), "web", "", "container web of web-1 is not running"},
		{task("web", "proxy"), "prxy", "", "no container prxy; did you mean proxy?"},
	} {
		got, err := choose(tt.task, tt.name)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if got != tt.want || said != tt.error {
			t.Errorf("%q of %+v: %q, %q, want %q, %q", tt.name, tt.task.Containers, got, said, tt.want, tt.error)
		}
	}
}

package controlplane_test

import (
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Who runs the ECS itself starts what Fargate does not take, and nothing
// throttles him; the API shows these tasks as all others.
func TestLocalRunAcceptsSettingsThatFargateRefuses(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, func(o *controlplane.Options) { o.Throttle = true })
	for range 10 { // the whole bucket
		w.run(func(in *shapes.RunTaskInput) { in.Count = new(10) })
	}
	w.register(`{"family": "bridge", "containerDefinitions": [{"name": "app", "image": "a", "memory": 64, "command": ` +
		`["x"]}]}`)
	in := shapes.RunTaskInput{
		TaskDefinition: "bridge", LaunchType: shapes.Fargate, ReferenceID: "bridge-1", Tags: []shapes.Tag{
			{Key: "a", Value: "b"},
		},
		Overrides: shapes.Overrides{Containers: []shapes.ContainerOverride{{Name: "app", Command: []string{"y"}}}},
	}
	out, err := w.RunUnthrottled(w.call(), "shop", in)
	if err != nil {
		t.Fatal(err)
	}
	id := idOf(out.Tasks[0].TaskARN)
	l := w.launches[id]
	testkit.Equal(t, "Reference", l.Reference, "bridge-1")
	testkit.Equal(t, "Service", l.Service, "shop")
	testkit.Equal(t, "Definition.ContainerDefinitions[0].Command[0]", l.Definition.ContainerDefinitions[0].Command[0],
		"y")
	if task := w.describe(id); len(task.Tags) != 1 || task.Tags[0] != in.Tags[0] {
		t.Errorf("described %+v", task)
	}
	_, err = w.RunTask(w.call(), in)
	testkit.WantError[*shapes.Error](t, err,
		"InvalidParameterException: Task definition does not support launch_type FARGATE.")
	in.TaskDefinition, in.LaunchType = "bridge:2", "MOON"
	if _, err = w.RunUnthrottled(w.call(), "", in); err == nil {
		t.Error("it takes what does not exist")
	}
}

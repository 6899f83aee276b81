package scheduler_test

import (
	"fmt"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
)

// An application that waits for an init container, and is then stopped.
func Example() {
	doc, err := taskdef.Parse([]byte(`{"family": "web", "containerDefinitions": [
		{"name": "init", "image": "init", "essential": false},
		{"name": "app", "image": "app", "dependsOn": [{"containerName": "init", "condition": "SUCCESS"}]}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	task := scheduler.New(doc.Definition, scheduler.Options{}, now)
	for _, event := range []scheduler.Event{
		scheduler.Tick{},
		scheduler.PullDone{Container: "init"},
		scheduler.PullDone{Container: "app"},
		scheduler.Started{Container: "init"},
		scheduler.Exited{Container: "init", Code: 0},
		scheduler.Started{Container: "app"},
		scheduler.StopRequested{Reason: "done"},
		scheduler.Exited{Container: "app", Code: 0},
	} {
		fmt.Printf("%T: %+v\n", event, task.Apply(event, now))
		now = now.Add(time.Second)
	}
	view := task.View()
	fmt.Println(view.KnownStatus, view.StopCode, view.StoppedReason)
	// Output:
	// scheduler.Tick: [{Container:init Image:init} {Container:app Image:app}]
	// scheduler.PullDone: []
	// scheduler.PullDone: [{Container:init}]
	// scheduler.Started: []
	// scheduler.Exited: [{Container:app}]
	// scheduler.Started: []
	// scheduler.StopRequested: [{Container:app}]
	// scheduler.Exited: [{}]
	// STOPPED UserInitiated done
}

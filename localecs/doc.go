// Package localecs is a local ECS: it runs real task definitions as processes
// on this machine, the way ECS would run them as containers, or in containers of a
// Docker engine.
//
// Flow: 1. Open makes a cluster with its own network, and chooses what runs
// containers; 2. Run gives a task definition to a scheduler state machine; 3. one
// goroutine per task turns its actions into containers, signals and probes, and what
// happens back into events; 4. the task's endpoints (metadata, credentials) are served
// inside its network namespace; 5. Stop and Close take everything away again.
//
// Owns: tasks, from the first pull to the last process.
// Never does: decide about order, health or status: that is scheduler's.
// Start reading at: Open and task.go.
package localecs

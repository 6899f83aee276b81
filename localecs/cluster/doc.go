// Package cluster is a local ECS on this machine: it runs real task definitions as processes, or as
// containers of a Docker engine, the way ECS would.
//
// Flow: 1. Open makes a cluster with its network and chooses what runs containers; 2. Run gives
// a task definition to a scheduler state machine; 3. one goroutine per task turns its actions into
// containers, signals and probes, and their outcome into events; 4. metadata and credentials are
// served inside the task's network, faults included; 5. OpenRegion puts the ECS API in front of it;
// 6. Close removes everything.
//
// Owns: tasks from the first pull to the last process, their volumes, environment, logs and names.
// Never does: decide about order, health or status: package scheduler does.
// Start reading at: Open, task.go and executor.go; region.go and launcher.go for the ECS API.
package cluster

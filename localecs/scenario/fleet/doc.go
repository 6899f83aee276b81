// Package fleet is the ECS of a scenario: its tasks and services by the names
// that the steps use, run by the control plane, so that the ECS API shows them.
//
// Flow: 1. Open makes the region and its cluster; 2. a step's wish becomes a call
// of the control plane, with the scenario's definitions registered on the way; 3.
// what has begun is handed to the runner: by Run, or by Joined for the tasks of
// services.
//
// Owns: the names of tasks. Never does: wait for a task's end, or judge it.
// Start reading at: Open, then Run.
package fleet

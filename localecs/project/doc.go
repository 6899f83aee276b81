// Package project is a docker compose project seen as tasks of ECS.
//
// Flow: (1) Update takes the containers as the engine has them; (2) a container
// with a task's label and no container's holds the task's network: each of its
// starts is a new task, with an ID made of both; (3) a task's containers and its
// definition become a scheduler.View, as the agent would tell it; (4) Lookup
// gives task metadata the task behind an endpoint ID; (5) ToStop says which
// containers the agent would stop now: those of a task whose essential container
// has ended.
//
// Owns: what a state of the engine means to ECS, task IDs, when a task is
// desired to be STOPPED. Never does: talk to the engine.
// Start reading at: State.Update.
package project

// Package agent is what ECS's agent is to tasks, for a docker compose project: it
// follows the engine, answers tasks, and stops a task whose essential container
// has ended.
//
// Flow: (1) each change in the engine, and each second, the project's State is
// brought up to date; (2) a task that begins gets credentials; (3) what ECS would
// stop is stopped; (4) TaskHandler answers tasks, AWSHandler STS, IAM and ECS.
//
// Owns: credentials of tasks, and what is asked of the engine. Never does: decide
// what a task's status is (package project does), listen.
// Start reading at: Agent.Run.
package agent

// Package metadata is the task metadata endpoint, version 4 and the older
// version 3, with statistics and task protection
// (spec/ecs-semantics.md section 3).
//
// Flow: (1) the path gives the endpoint ID and what is asked for; (2) a Lookup
// turns the ID into Facts and the scheduler's View of that moment; (3) both
// are rendered in the Fargate or the EC2 form; (4) unknown IDs are answered
// with the ECS agent's own texts.
//
// Owns: the JSON of tasks and containers, the differences of launch types.
// Never does: cache, listen, limit the rate (package endpoints does), decide
// what a task's status is (package scheduler does).
// Start reading at: New, then task.
package metadata

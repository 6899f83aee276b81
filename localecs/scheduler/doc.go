// Package scheduler is the state machine of one ECS task: what happened goes
// in as events, what to do next comes out as actions. It follows
// spec/ecs-semantics.md sections 1.1 to 1.6 and 2.
//
// Flow: (1) the first Tick asks for every image; (2) after the last pull each
// container starts as soon as its dependsOn conditions hold; (3) health probes
// and start timeouts run on Tick; (4) an essential exit or a stop
// request turns every desired status to STOPPED at once and signals containers
// in reverse dependsOn order, with a kill after each stopTimeout; (5) when
// every container is STOPPED the task says TaskStopped.
//
// Owns: desired and known statuses, ordering, health, reasons, times.
// Never does: I/O, goroutines, clocks; the caller passes now and sends a Tick
// when Next says so.
// Start reading at: Task.Apply.
package scheduler

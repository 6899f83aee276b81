// Package scheduler is the state machine of one ECS task: what happens to the task comes
// in as events, what to do next comes out as actions.
//
// Flow: 1. the first Tick asks for every image; 2. after the last pull each container starts
// as soon as its dependsOn conditions hold; 3. health probes and start timeouts run on Tick;
// 4. the exit of an essential container or a stop request turns every desired status to
// STOPPED and signals containers in reverse dependsOn order, with SIGKILL after each
// stopTimeout; 5. when every container is STOPPED the task emits TaskStopped.
//
// Owns: desired and known statuses, ordering, health, reasons, times; Changes compares views.
// Never does: I/O, goroutines, clocks. The caller passes now, and a Tick when Next asks for it.
// Start reading at: Task.Apply.
package scheduler

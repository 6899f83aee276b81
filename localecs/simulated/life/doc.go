// Package life is the life of one task that has no processes: what its
// containers would do, and when.
//
// Flow: 1. New takes a definition, with overrides in it; 2. Advance goes through
// all that is due, each thing at its own time, and returns how the task was after
// each; 3. Stop, Exit and SetHealth are what happens to it from outside.
//
// Owns: how simulated containers behave, how long the steps of a task take.
// Never does: read a clock, decide what ECS does (scheduler), know other tasks.
// Start reading at: Task.Advance, then Behaviour.
package life

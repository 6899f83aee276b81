// Package record is one task as the ECS API knows it.
//
// Flow: 1. Apply takes over what a launcher reports, and counts versions;
// 2. Shape is the task in an answer, as late as Lag says; 3. Listed and Matches
// say in which lists it is.
//
// Owns: last and desired status, version, the interface's state.
// Never does: read a clock, lock, know other tasks.
// Start reading at: Record.Apply.
package record

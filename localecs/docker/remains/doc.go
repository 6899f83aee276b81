// Package remains removes containers and volumes from a Docker engine, also for a
// simulator that is dead.
//
// Flow: 1. Watch starts this binary once more, in a session of its own; 2. that waits
// for the end of its standard input, which the simulator holds; 3. Sweep removes what
// has the simulator's label, containers first.
//
// Owns: the watcher process.
// Never does: touch what has no label of ours, or remove images.
// Start reading at: Sweep.
package remains

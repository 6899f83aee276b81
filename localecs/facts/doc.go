// Package facts makes what task metadata says of a task besides its state.
//
// Owns: ARNs, IDs of containers, a definition in the words of task metadata.
// Never does: know what a task is doing.
// Start reading at: Cluster.Task.
package facts

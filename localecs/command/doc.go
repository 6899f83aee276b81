// Package command wires the localecs binary: one file per command, no decisions.
//
// Flow: 1. read flags and environment; 2. build a scenario or a cluster, or find a running one by its
// control socket; 3. run it or query it; 4. print the result as text or JSON, and return it as an exit
// code.
//
// Owns: the environment of localecs, which only this package reads; the words of its commands.
// Never does: know how ECS behaves.
// Start reading at: commands.
package command

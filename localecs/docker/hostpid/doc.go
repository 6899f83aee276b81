// Package hostpid finds a container's processes on this host.
//
// Flow: 1. a process is a container's when its control group's path has the
// container's ID, whatever the engine's driver; 2. its numbers in all pid namespaces
// (NSpid) tell which one the engine means, since the engine may number processes in
// a namespace inside of this one; 3. a pidfd holds it.
//
// Owns: nothing.
// Never does: ask an engine, or trust a number that may belong to another by now.
// Start reading at: Open.
package hostpid

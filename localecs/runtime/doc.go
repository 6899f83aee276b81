// Package runtime runs a container as a process with namespaces of its own: no
// container engine, and nothing left behind however the simulator ends.
//
// Flow: 1. New checks the host and starts the anchor, the first process of a
// pid namespace that all containers are inside; 2. Start turns a Spec into a
// stage.Config and clones this binary into new namespaces, where package stage
// makes the root file system and becomes the program, so that the program is
// PID 1; 3. Container tells how it ends, Signal and Exec act on it; 4. Close
// kills everything and waits.
//
// Owns: container processes, their output, probes.
// Never does: mount anything in the host's namespace, write outside the
// volumes, or decide when to start or stop what.
// Start reading at: Runtime.Start, then stage.Main.
package runtime

// Package runtime runs a container as a process with its own namespaces, without a container
// engine. Nothing outlives the simulator, however it ends.
//
// Flow: 1. New checks the host and starts the anchor, the first process of a pid namespace that
// all containers are in; 2. an Image names the programs a container sees, and Resolver.Binds
// finds them and their libraries on this host; 3. Start turns a Spec into a stageConfig and clones
// this binary into new namespaces, where Role makes the root file system and becomes the
// program; 4. Container reports the exit, Signal, Exec and Processes act on it; 5. control groups
// limit and measure memory; 6. Close kills everything and waits.
//
// Owns: container processes, their output, probes, control groups named localecs-*.
// Never does: mount in the host's namespace, write outside the volumes, or decide when to start
// or stop a container.
// Start reading at: Runtime.Start, then Role and Image.
package runtime

// Package supervise runs one child process the way a container's first process
// must: nothing sent to us is lost, nothing the child leaves behind stays.
//
// Flow: 1. Subscribe queues signals before anything else happens; 2. Start
// forks the child into its own process group; 3. one loop waits for the
// child and reaps every other process that was handed to us; 4. when the child
// has ended, its group and all adopted descendants are killed; 5. Wait gives
// the exit code.
//
// Owns: fork, wait, kill, prctl. Only supervise_linux.go makes such calls.
// Never does: decide which signal goes where (see package entrypoint), or
// coexist with os/exec: the loop reaps every child of this program.
// Start reading at: Start.
package supervise

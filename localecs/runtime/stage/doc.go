// Package stage is the part of the container runtime that runs inside a
// container before its program does. The simulator starts its own binary again
// as the container's first process; Main recognises that and never returns.
//
// Flow: 1. read the Config from a pipe; 2. join the task's network, make a
// root file system out of tmpfs and bind mounts, pivot into it; 3. set host
// name, limits, user, capabilities; 4. report "+" and become the program, or
// report the error and end. With Config.Init the program becomes a child of
// this binary, which then is PID 1 and does an init's work.
//
// Owns: everything between clone and exec.
// Never does: touch a mount outside its own namespace, or outlive the
// simulator: it asks for SIGKILL on its parent's death last of all, since a
// change of user cancels that.
// Start reading at: Main and start.
package stage

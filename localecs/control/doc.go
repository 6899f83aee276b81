// Package control lets other programs inspect and control a running cluster: by a Unix socket in the
// directory of its logs, or by the ECS API on a loopback address.
//
// Flow: 1. Listen makes the socket; 2. Serve answers on it what a Controller knows, HTTP with JSON; 3.
// Find lists the runs below a directory, and Dial connects to one; 4. Open starts a local ECS
// without tasks whose API other programs drive; 5. Close reports to connected clients how the run ended.
//
// Owns: the socket and the form of what goes through it, the exported AWS environment.
// Never does: know how tasks run.
// Start reading at: Controller and Server, then server.go.
package control

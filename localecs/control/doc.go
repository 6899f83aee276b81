// Package control lets other programs of the same user look into a cluster that
// a process runs, and act on it: a Unix socket in the directory of its logs.
//
// Flow: 1. Listen makes the socket; 2. Serve answers on it what World says, HTTP
// with JSON; 3. Find sees which runs there are below a directory, and Dial speaks
// with one; 4. Close tells who follows how all has ended, and Ended who comes late.
//
// Owns: the socket, and the form of what goes through it.
// Never does: know how tasks run; that is World's.
// Start reading at: World, then Server.
package control

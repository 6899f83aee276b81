// Package server is the scenario's Consul server: what is set up in it, and
// what it knows of the tasks.
//
// Flow: 1. Start runs it: Args is its command line, WaitLeader waits for writes;
// 2. SetUp makes auth methods, tokens and config entries; 3. a Watcher follows
// every health check; 4. Left says what is still there of a task.
//
// Owns: the meaning of "in traffic" and of "nothing left".
// Never does: change what a task has written.
// Start reading at: Watcher and Left.
package server

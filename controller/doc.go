// Package controller keeps one ECS cluster's part of Consul in order: the ACL
// objects that let its tasks log in, and nothing of tasks that are dead.
//
// Flow: 1. Run waits to be the leader; 2. the leader sets up what tasks need,
// until it has succeeded, and looks after it now and then; 3. it makes pass after
// pass, at a pace that follows what the last one found; 4. whoever stops leading
// waits again, and the end of the context is the end.
//
// Owns: retries, the pace, metrics and health.
// Never does: decide what is wanted (wanted, setup), what is a leftover
// (cleanup), or who leads (lease).
// Start reading at: Run.
package controller

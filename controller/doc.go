// Package controller keeps one ECS cluster's part of Consul in order: the ACL
// objects that let its tasks log in, and nothing of tasks that are dead.
//
// Flow: 1. Run waits to be the leader; 2. the leader runs setup, which makes what
// tasks need to log in, again soon while it fails and every ten minutes after;
// 3. between that it makes pass after pass, at a pace that follows what the last one
// found; 4. a controller that stops leading waits again. The end of the context ends Run.
//
// Owns: retries, the pace, metrics and health.
// Never does: decide what is wanted (wanted, setup), what is a leftover
// (cleanup), or who leads (lease).
// Start reading at: Run.
package controller

// Package controller maintains one ECS cluster's objects in Consul: it makes what the
// cluster's tasks need to log in, and removes what dead tasks left.
//
// Flow: 1. Run waits for the leader's lock; 2. the leader repeats setup, soon after a
// failure and every ten minutes after a success; 3. beside that it makes pass after
// pass, at a pace that follows what the last one found; 4. a leader that loses the lock
// waits for it again. The end of the context ends Run.
//
// Owns: the leader's lock, retries, the pace, metrics and health.
// Never does: decide which objects should exist (wanted, setup) or what is a leftover
// (cleanup).
// Start reading at: Run, then Lock.Lead.
package controller

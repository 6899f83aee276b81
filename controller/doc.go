// Package controller maintains one ECS cluster's objects in Consul: it makes what the
// cluster's tasks need to log in, and removes what dead tasks left: ACL tokens of our
// auth methods, services with their proxies, and nodes without services. It removes only
// with proof, which it logs and returns.
//
// Flow: 1. Controller.Run waits for the leader's lock; 2. the leader repeats setup, soon
// after a failure and every ten minutes after a success; 3. beside that it makes one
// Cleaner.Pass after the other, at a pace that follows what the last one found. A pass
// reads tokens and services from Consul, then from ECS which tasks run (Look); decide
// (pure) compares this with earlier passes: what to delete, on which evidence, and why the
// rest stays; Apply deletes. 4. A leader that loses the lock waits for it again; the end of
// the context ends Run. The command gc uses a Cleaner without a Controller.
//
// Owns: the leader's lock, the pace, metrics and health; what proves that a task is dead,
// and whose a token or a service is.
// Never does: decide which objects should exist (setup); in the clean-up treat a missing
// answer as proof, trust the wall clock of this machine, or write when there is nothing to
// remove.
// Start reading at: Controller.Run; for the clean-up at decide, then Cleaner.Look.
package controller

// Package cleanup removes from Consul what dead ECS tasks left there: ACL tokens
// of our auth methods, services with their proxies, and nodes that nothing hangs
// on any more. It removes only with proof, which it logs and returns.
//
// Flow: 1. Cleaner.Look reads tokens and services from Consul, then from ECS
// which tasks run, and looks the other tasks up by their IDs; 2. decide (pure)
// compares this with earlier sightings: what goes, on which evidence, and why the
// rest stays; 3. Cleaner.Apply deletes, several at a time.
//
// Owns: what proves that a task is dead, and whose a token or a service is.
// Never does: take silence for death, trust the wall clock of this machine, write
// when there is nothing to remove.
// Start reading at: decide, then Cleaner.Look.
package cleanup

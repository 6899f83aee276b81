// Package cleanup removes from Consul what dead ECS tasks left there: ACL tokens
// of our auth methods, services with their proxies, and nodes without services. It
// removes only with proof, which it logs and returns.
//
// Flow: 1. Cleaner.Look reads tokens and services from Consul, then from ECS
// which tasks run, and looks the other tasks up by their IDs; 2. decide (pure)
// compares this with earlier observations: what to delete, on which evidence, and why
// the rest stays; 3. Cleaner.Apply deletes, several at a time. Cleaner.Pass does all of
// it, and makes the Enterprise namespaces of running tasks.
//
// Owns: what proves that a task is dead, and whose a token or a service is.
// Never does: treat a missing answer as proof, trust the wall clock of this machine,
// write when there is nothing to remove.
// Start reading at: decide, then Cleaner.Look.
package cleanup

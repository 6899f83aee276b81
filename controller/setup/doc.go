// Package setup makes Consul hold what the controller wants: it reads, lets
// package wanted compare, and writes the differences.
//
// Flow: 1. Ensure reads every object; nothing differs, nothing is written;
// 2. else it takes the KV lock of all controllers that share the auth methods,
// and reads again; 3. it applies the plan in order, an object's failure stops
// only those that need it; 4. EnsureNamespaces does the same for the Enterprise
// namespaces of live tasks.
//
// Owns: the lock, and what a refused request needs of the controller's token.
// Never does: decide what an object should be, retry, or write without the lock.
// Start reading at: Setup.Ensure.
package setup

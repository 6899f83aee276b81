// Package setup makes the objects that the controller wants in Consul: it reads them,
// package wanted compares, and the differences are written.
//
// Flow: 1. Ensure reads every object, and writes nothing if nothing differs;
// 2. else it takes the KV lock of all controllers that share the auth methods,
// and reads again; 3. it applies the plan in order, and an object's failure stops
// only those that need it; 4. EnsureNamespaces does the same for the Enterprise
// namespaces of live tasks.
//
// Owns: the lock, and which ACL rule a refused request needs.
// Never does: decide what an object should be, retry, or write without the lock.
// Start reading at: Setup.Ensure.
package setup

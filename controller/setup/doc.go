// Package setup describes the objects that the controller wants in Consul, and makes them.
//
// Flow: 1. Agent and Agentless build the State of their generation as data: policies, roles,
// auth methods, binding rules, the anonymous token, the cluster's node; 2. Ensure reads what
// exists; 3. State.compare (pure) plans the writes for differences only; 4. if there are any,
// Ensure takes the KV lock of all controllers that share the auth methods, and reads again;
// 5. it applies the plan in order, and an object's failure stops only those that need it.
// EnsureNamespaces does the same for the Enterprise namespaces of live tasks.
//
// Owns: names, rules and texts of the objects; the lock; which ACL rule a refused request
// needs; what each controller claims of the trust in a shared method, so that a narrowed role
// path removes its own ARNs and no others.
// Never does: change what an operator set, retry, or write without the lock.
// Start reading at: State, then Setup.Ensure.
package setup

// Package wanted describes, as data, the objects that the controller wants in Consul,
// and plans the writes that make them. It has no I/O.
//
// Flow: 1. Agent and Agentless build the State of their generation: policies, roles,
// auth methods, binding rules, the anonymous token, the cluster's node; 2. State.Compare compares it with
// what was Found, field by field, and plans the writes in their order;
// 3. Record is what each controller claims of the trust in a shared method, so
// that a narrowed role path removes its own ARNs and no others.
//
// Owns: names, rules and texts of the objects.
// Never does: a request, or a change of what an operator set.
// Start reading at: State, then Compare.
package wanted

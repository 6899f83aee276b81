// Package wanted says what the controller wants Consul to hold, as data, and
// which writes lead there. It has no I/O.
//
// Flow: 1. Agent builds the State of the agent generation: policies, roles,
// auth methods, binding rules, the anonymous token; 2. State.Compare holds it
// against what was Found, field by field, and plans the writes in their order;
// 3. Record is what each controller claims of the trust in a shared method, so
// that a narrowed role path removes its own ARNs and no others.
//
// Owns: names, rules and texts of the objects.
// Never does: a request, or a change of what an operator set.
// Start reading at: State, then Compare.
package wanted

// Package usage states what a task definition uses of Consul, and the rights that this
// takes.
//
// Flow: 1. admission finds uses out, each a kind and a name at a place; 2. ByNamespace
// sums them up for a report; 3. Requirements looks each kind up in Rules, and names every
// right once: of the one who submits the definition, and of the task.
//
// Owns: the kinds of uses and the table of rights. Never does: read a definition, or ask
// Consul.
// Start reading at: Rules.
package usage

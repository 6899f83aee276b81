// Package envoy talks to the task's Envoy at its admin address, and to an agent in
// Envoy's place.
//
// Flow: 1. ReadBootstrap reads what an Envoy was started with; 2. Ask makes a request at
// its admin address; 3. Missing asks Envoy which listeners, clusters and endpoints it
// has, and then an agent's xDS server, as that Envoy would, which of them it has.
//
// Owns: what is read of a bootstrap, of admin answers, and of the xDS protocol.
// Never does: change anything in Envoy, acknowledge configuration, or use the
// API of Consul.
// Start reading at: ReadBootstrap, then Missing.
package envoy

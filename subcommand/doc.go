// Package subcommand wires the commands of consul-ecs: one short file per
// command, no decisions.
//
// Flow: 1. read flags, environment and configuration; 2. build the ports
// (metadata client, Consul clients, registrar); 3. hand them to a flow; 4.
// return its error.
//
// Owns: the environment. Only this package and config read it.
// Never does: work that a test would want to reach without a process.
// Start reading at: commands in main.go.
package subcommand

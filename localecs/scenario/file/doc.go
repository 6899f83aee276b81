// Package file is the scenario file: its form, and what can be wrong with it.
//
// Flow: 1. Load reads the document, unknown keys are errors; 2. problems.go
// reports every mistake in it at once, the order of the steps included; 3.
// HostImages and IdentityRoles turn parts of it into the simulator's types.
//
// Owns: the keys, their defaults, the rules between them.
// Never does: run anything, or read a task definition.
// Start reading at: Scenario.
package file

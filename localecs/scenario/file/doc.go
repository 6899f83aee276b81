// Package file is the scenario file: its form, and every mistake that can be found by reading it.
//
// Flow: 1. Load reads the document; unknown keys are errors; 2. problems.go and stepproblems.go
// report all mistakes at once, the order of the steps included; 3. HostImages and
// IdentityRoles turn parts of it into the simulator's types; 4. Schema prints the JSON schema
// for editors.
//
// Owns: the keys, their defaults, the rules between them.
// Never does: run anything.
// Start reading at: Scenario.
package file

// Package taskdef is the ECS task definition: its types, a parser that reports
// everything wrong at once, the defaults registration fills in, and the rules
// by which ECS accepts or refuses it.
//
// Flow: (1) Parse finds the document, also inside a describe-task-definition
// answer; (2) it binds every value to the types and collects type errors and
// unknown keys by JSON path; (3) it fills the defaults; (4) Validate runs the
// rule table and returns every violation.
//
// Owns: key names, defaults, the rule table with AWS's wording.
// Never does: I/O, AWS calls; it knows nothing of Consul or of the simulator.
// Start reading at: Parse, then Rules.
package taskdef

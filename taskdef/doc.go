// Package taskdef is the ECS task definition: its types, documents in three formats,
// the defaults registration fills in, and the rules by which ECS accepts or refuses
// it.
//
// Flow: (1) Parse, ParseTemplate or ParseContainers reads a document into a tree of
// nodes that keeps its order; (2) every value is bound to the types, and type errors
// and unknown keys are collected by path; (3) the defaults are filled in; (4)
// Validate applies the rule table and returns every violation; (5) a changed tree is
// written back, and Diff and Patch compare two documents.
//
// Owns: key names, defaults, the rule table with AWS's wording, Fargate's sizes.
// Never does: I/O, AWS calls; it knows nothing of Consul or of the simulator.
// Start reading at: Parse, then Rules.
package taskdef

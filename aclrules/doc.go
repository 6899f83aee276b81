// Package aclrules knows Consul's ACL language: what a policy says, what many
// policies say together, and why (spec/admission-rules-broker.md section 4).
//
// Flow: 1. Parse reads a policy's text into rules, Lint finds what the server
// would ignore without a word; 2. Merge pools the rules of everything that a
// token has into a Table; 3. Table.Decide answers one Query, Table.Explain says
// which rules were looked at and why each won or lost.
//
// Owns: levels, precedence, look-up. A verdict has three values: with rules
// that nobody could read, an allow may be wrong, and is then unknown.
// Never does: I/O, or change a parsed rule: policies are shared.
// Start reading at: Table.Decide.
package aclrules

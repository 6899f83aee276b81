// Package aclrules answers what Consul's ACL rules allow, and why.
//
// Flow: 1. Parse reads each policy; 2. Merge pools the
// rules of everything that a token has into a Table; 3. Table.Decide answers a
// Query; 4. Table.Explain returns which rules were examined, why each won or
// lost, and what would turn the answer.
//
// Owns: precedence and lookup. A verdict has three values: with rules that
// cannot be read, an allow may be wrong, and is then unknown.
// Never does: I/O, or change a rule: policies are shared.
// Start reading at: Table.Decide.
package aclrules

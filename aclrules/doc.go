// Package aclrules answers what Consul's ACL rules allow, and why.
//
// Flow: 1. Resolver.Resolve reads what a Subject links to, a token, policies, roles or a
// login, from Objects: a server's (consulutil.ACLReader) or a file's (Snapshot); 2. Parse
// reads each policy; 3. Merge pools all rules into a Table; 4. Table.Decide answers a Query;
// 5. Table.Explain returns which rules were examined, why each won or lost, and what would
// turn the answer; 6. a Report words all of it for users. LintText and Snapshot.Lint find
// what does not do what its author will think.
//
// Owns: precedence and lookup. A verdict has three values: with rules that
// cannot be read, an allow may be wrong, and is then unknown.
// Never does: I/O, or change a rule: policies are shared.
// Start reading at: Table.Decide, then Resolver.Resolve.
package aclrules

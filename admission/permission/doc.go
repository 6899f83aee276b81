// Package permission checks whether a Consul token allows what an admitted task definition
// requires.
//
// Flow: 1. the definition's requirements go to the server, to the resolver of the token's
// rules, or to both; 2. each answer that is no allow becomes a finding, with the smallest
// policy that would grant it; 3. policies that the definition asks the token broker for
// are compared with the token's own rules.
//
// Owns: the engines, their agreement, and the codes about rights. Never does: read a token
// or an address from the environment, allow what is unknown, or stop at the first lack.
// Start reading at: Checker.Check.
package permission

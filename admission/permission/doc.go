// Package permission checks whether an admitted task definition would get the rights that
// it requires: whether the operator's Consul token allows them, and whether the IAM role
// of the task lets it log in to Consul as its service.
//
// Flow of Checker: 1. the definition's requirements go to the server, to the resolver of
// the token's rules, or to both; 2. each answer other than allow becomes a finding, with
// the smallest policy that would grant it; 3. policies that the definition requests from
// the token broker are compared with the token's own rules.
//
// Flow of RoleChecker: 1. the role is read from IAM; 2. its tags are compared with the
// service, its path with that of the auth method, and its trust policy with ECS; 3. IAM
// is asked whether the role may read itself, as the login with its tags requires.
//
// Owns: the engines, their agreement, and the codes about rights and the role. Never does:
// read a token or an address from the environment, allow what is unknown, stop at the
// first missing right, or change a role.
// Start reading at: Checker.Check, then RoleChecker.Check.
package permission

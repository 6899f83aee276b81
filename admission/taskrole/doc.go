// Package taskrole checks whether the IAM role of an admitted task lets it log in to
// Consul as its service.
//
// Flow: 1. the role is read from IAM; 2. its tags are compared with the service, its path
// with that of the auth method, and its trust policy with ECS; 3. IAM is asked whether it
// may read itself, as the login with its tags requires.
//
// Owns: the codes about the role. Never does: change the role, or read the auth method.
// Start reading at: Checker.Check.
package taskrole

// Package policy is Consul's ACL language: the rules of a policy's text, those
// that identities and templates stand for, and what the server ignores
// (spec/admission-rules-broker.md section 4.1).
//
// Flow: 1. Parse reads HCL or JSON by the library that the server uses, so that
// both take it for the same; 2. ServiceIdentity, NodeIdentity, Template and
// Builtin make the policies that have no text; 3. Unknown tells what a text's
// author has written in vain.
//
// Owns: resources, levels, and which of two levels outranks the other.
// Never does: decide a query, or change a parsed rule.
// Start reading at: Rule.
package policy

// Package resolver collects the rules that a Consul token has, or a login would
// get, and says of each how it came there (spec/admission-rules-broker.md
// sections 1 S3, 4.4 and 4.5).
//
// Flow: 1. VisitRulesFor walks a Subject: policies, those of roles, identities,
// templated policies, in the server's order, with the server's way of dropping
// doubles and what is for other datacenters; 2. the visitor gets each rule with
// its Source, and each error; 3. Resolve keeps all of it, and whether anything
// is missing; 4. aclrules.Merge makes a table of the rules.
//
// Owns: what of a subject counts, and where it comes from.
// Never does: I/O. Getters are given; those of a server are in consulutil.
// Start reading at: Resolver.VisitRulesFor.
package resolver

// Package aclread reads ACL objects from a Consul server for the resolver of aclrules, and
// asks the server what a token may do, to compare.
//
// Flow: 1. Open makes a client, in whose token's name everything is read; 2. a
// token brings all that it links to where that may be read; 3. each getter
// answers from memory what was read before, errors included; 4. errors become
// the resolver's: dangling, unreadable, not found, disabled. An Authorizer sends queries to
// the server's own ACL engine.
//
// Owns: what has been read, for as long as one command runs.
// Never does: write, or retry: the caller is a user.
// Start reading at: Reader.
package aclread

// Package aclread reads ACL objects from a Consul server for the resolver of
// aclrules/resolver.
//
// Flow: 1. New wraps a client, in whose token's name everything is read; 2. each
// getter answers from memory what it has read before, errors included; 3.
// errors become the resolver's: dangling, unreadable, not found.
//
// Owns: what has been read, for as long as one command runs.
// Never does: write, or retry: whoever asks is a person.
// Start reading at: Reader.
package aclread

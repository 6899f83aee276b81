// Package store stores the records of issued tokens.
//
// Flow: 1. a broker that begins to lead calls Load; 2. it changes a copy of a Record and
// calls Save, which writes it if no other broker has, under the leader's lock; 3. after a
// lost answer Read shows what was written.
//
// Owns: the form of a record in Consul's KV, which has hashes and no secrets.
// Never does: decide when a token ends.
// Start reading at: Record, then Store and KV.
package store

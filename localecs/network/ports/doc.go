// Package ports keeps the ports of a host that several tasks share.
//
// Flow: 1. Take looks in the book who has claimed a port, and otherwise tries
// it; 2. of a port in use, the kernel's tables say at which address somebody
// listens; 3. Release crosses a claim out.
//
// Owns: who has claimed what, the words for a port that cannot be had.
// Never does: hold a port: it is free for its owner when Take returns.
// Start reading at: Book.
package ports

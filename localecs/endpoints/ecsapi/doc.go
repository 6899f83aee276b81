// Package ecsapi is the ECS API on the wire: AWS's JSON 1.1 protocol.
//
// Flow: (1) read the body; (2) sigv4 verifies the signature, and the caller must
// be allowed to call; (3) the call takes a token out of its bucket; (4) the body
// becomes the operation's input; (5) the operation runs; (6) its answer or its
// error becomes JSON.
//
// Owns: the protocol, AWS's errors of it, the buckets of AWS's throttling.
// Never does: listen, or know what an operation does.
// Start reading at: New, then operations.go.
package ecsapi

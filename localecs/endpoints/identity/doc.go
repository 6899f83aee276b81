// Package identity is the IAM side of the local ECS: roles and users as data,
// the temporary keys tasks hold, and the credentials endpoint that hands them
// out (spec/ecs-semantics.md section 4).
//
// Flow: (1) roles are put into a Store; (2) Issue opens a credentials ID for
// a task and makes its first key; (3) Handler answers GET
// /v2/credentials/<id> with the current key; (4) Rotate replaces it in place,
// the older key stays valid until it expires; (5) Remove closes the ID.
//
// Owns: ARNs and unique IDs of principals, keys and their expiry.
// Never does: verify signatures (package awsapi does), listen, read a clock
// other than in Handler.
// Start reading at: Store.
package identity

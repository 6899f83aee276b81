// Package iam is the AWS identity side of the local ECS: roles and users, the temporary keys
// of tasks, their credentials endpoint, and the STS and IAM that verify them.
//
// Flow: 1. roles are put into a Store; 2. Issue opens a credentials ID for a task and makes
// its first key; 3. the credentials handler answers GET /v2/credentials/<id>; 4. New returns STS and
// IAM, which verify a request's Signature Version 4 and run the signed action; 5. Rotate
// and Remove end keys.
//
// Owns: principals, keys and their expiry, the Query API's XML and error codes, and the
// Condition (clock skew) that a fault attaches to a request.
// Never does: listen, or accept an unsigned request.
// Start reading at: Store, then New and Verifier.
package iam

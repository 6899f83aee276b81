// Package backend defines what the token broker needs from a system that gives
// tokens, so that Consul and Vault are one thing to it.
//
// Flow: 1. Issue turns the verified request of a task into a Grant, a promise that
// gives no access to anything yet; 2. Redeem turns the grant into a Token, once;
// 3. Revoke and Lookup work on the accessor, also after the broker was restarted.
//
// Owns: the terms request, grant and token, and the errors that the broker distinguishes.
// Never does: decide whether a task may have a policy; log a secret.
// Start reading at: Backend. Packages consul and vault below implement it, and pass the
// suite in suite_test.go.
package backend

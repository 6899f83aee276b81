// Package backend has the systems that give tokens, so that Consul and Vault are one
// thing to the token broker.
//
// Flow: 1. Issue turns the verified request of a task into a Grant, a promise that
// gives no access to anything yet; 2. Redeem turns the grant into a Token, once;
// 3. Revoke works on the accessor, also after the broker was restarted.
//
// LoginBackend logs in for the task through a JWT auth method of Consul and needs no
// privilege there; ACLBackend creates tokens with a token that has acl:write. Both make
// a token at redemption, and a restart voids their grants. VaultBackend creates periodic
// orphans that Vault itself wraps; the task renews them with VaultClient.
//
// Owns: the terms request, grant and token, the errors that the broker distinguishes, and
// the form of a task's token in Consul and Vault.
// Never does: decide whether a task may have a policy; log a secret; repeat a request to
// Vault, since a lost answer may have made a token, or follow Vault's redirects, which
// would take the token to another host.
// Start reading at: Backend, then LoginBackend. All pass the suite in suite_test.go.
package backend

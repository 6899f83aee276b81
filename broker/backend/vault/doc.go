// Package vault issues tokens of HashiCorp Vault as periodic orphans that Vault itself
// wraps, and renews them.
//
// Flow: 1. Issue checks that the policies exist and creates an orphan token behind a
// single-use wrapping token; 2. Redeem unwraps it; 3. the task renews with
// Client.RenewSelf and does not need the broker again; 4. Revoke and Lookup go by the
// accessor, which Vault names when it wraps.
//
// Owns: the calls of Vault's HTTP API and the meaning of their answers.
// Never does: repeat a request, since a lost answer may have made a token; follow a
// redirect, since it would take the token to another host.
// Start reading at: Backend, then Client.
package vault

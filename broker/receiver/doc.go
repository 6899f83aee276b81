// Package receiver obtains a token from the token broker for the task in which it runs,
// and keeps the task's token file up to date.
//
// Flow: 1. Run takes over a token file of an earlier run of the same task that is still
// valid; 2. obtain listens on the callback port, asks the broker with a new key and nonce
// for each attempt, and waits for the push; 3. delivery answers the push: it opens the
// handle, redeems it at the broker and writes the file; 4. one that stays renews a Vault
// token, and rotates any other, at 2/3 of its life; 5. after TERM it waits until the
// application containers have stopped, removes the files and revokes the token.
//
// Overlap: a replaced token stays valid for 10 s or a tenth of its life, whichever is
// shorter, after the file holds the new one. Applications reread the file within that
// time. Then the receiver revokes the old token where its holder can (consul-login by
// logout, vault by revoke-self). The broker revokes one of consul-acl, since its holder
// cannot.
//
// Owns: the token file, mode 0600, and beside it <file>.json, which has the accessor, the
// expiry and the hash of the token, but not the token. Also the protocol, for the broker
// too: the JSON bodies of its API and of its push (protocol.go), strict and bounded decoding
// (decode.go), and the sealing of a handle to the key, task and nonce of a request (seal.go).
// Never does: log or return a secret. A body that is not encoded by its Encode, or is printed,
// has <redacted> for secrets.
// Start reading at: Run, then delivery; for the protocol TokenRequest, then Seal.
package receiver

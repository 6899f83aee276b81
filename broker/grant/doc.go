// Package grant is the protocol between the token broker and a task: the JSON bodies of
// the broker's API and of its push, and the sealing of what is pushed.
//
// Flow: 1. a task sends a TokenRequest with a nonce and the public part of a Key that it
// made for this request; 2. the broker pushes a Push, whose token is a handle sealed to
// that key, the task's ARN and the nonce; 3. the task opens it and sends the handle in an
// UnwrapRequest; 4. the broker answers Unwrapped, with the token, once.
//
// Owns: strict and bounded decoding, encoding with secrets in clear (Encode), HPKE. A
// body that is encoded any other way, or printed, has <redacted> for secrets.
// Never does: send or store anything. Start reading at: TokenRequest, then Seal.
package grant

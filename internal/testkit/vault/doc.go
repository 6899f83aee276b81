// Package vault has a Vault server for tests: the program that VAULT_BIN names, Vault or
// OpenBao in dev mode, or without it a fake. Tests use its API only, so that both run the
// same cases.
//
// Flow: 1. New starts a server, Program one for all tests of a process; 2. Do sends a
// request, as root or with a token of the test; 3. Pass lets time pass, at once in the fake;
// 4. a Front answers in place of the server.
//
// Owns: what the fake knows of Vault, as a client can observe it: tokens and their policies,
// response wrapping, namespaces, the seal.
// Never does: listen on more than the loopback interface, or fall back to the fake when the
// program is missing.
// Start reading at: New, then fake.serve.
package vault

// Package sigv4 verifies AWS Signature Version 4 of a request's headers.
//
// Flow: (1) parse the Authorization header; (2) compare scope, date and session
// token; (3) sign the request again with the SDK's own signer and compare.
//
// Owns: what a valid signature is, and AWS's words about one that is not.
// Never does: hold keys, or know what a request asks for.
// Start reading at: Verifier.
package sigv4

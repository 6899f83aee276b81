// Package awsapi is a local AWS STS and IAM: the Query API, as far as a Consul
// login with the aws-iam auth method and the AWS SDKs' identity calls need it.
// One handler serves both services.
//
// Flow: (1) read the body; (2) sigv4 verifies the signature against the keys of
// an identity.Store; (3) run the action of the signed service; (4) answer XML,
// or AWS's own error code.
//
// Owns: actions, the XML and its error codes.
// Never does: listen, hold keys, accept an unsigned request.
// Start reading at: New.
package awsapi

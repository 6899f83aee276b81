// Package awsutil sets up the AWS SDK and proves to Consul which IAM role the
// task has.
//
// Flow: 1. NewSigner runs the SDK's default chain, with the region from the
// configuration, the SDK's environment or the task ARN; 2. Signer.Bearer gets
// the credentials and learns the role's name, on ECS from the same document;
// 3. signs GetRole (or GetUser) and packs it into headers; 4. signs
// GetCallerIdentity with those headers; 5. encodes the signed request, which
// Consul's aws-iam auth method then sends to AWS in our name.
//
// Owns: everything known of AWS partitions, endpoints and the bearer's format.
// Never does: call IAM, retry, or read the environment itself (the SDK does).
// Start reading at: Signer.Bearer.
package awsutil

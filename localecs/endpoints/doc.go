// Package endpoints puts together what a task finds at 169.254.170.2: task
// metadata, credentials and the agent API, in front of one rate limit.
//
// Flow: (1) a path with // is redirected to its clean form; (2) each client
// address has a token bucket per path; (3) the path's prefix chooses the
// handler.
//
// Owns: redirect, rate limit, routes. The handlers are in the packages
// metadata, identity and awsapi (STS and IAM, on an address of their own).
// Never does: listen.
// Start reading at: TaskHandler.
package endpoints

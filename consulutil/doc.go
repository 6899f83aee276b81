// Package consulutil is the only place that makes Consul API clients, and the
// only one that judges Consul's errors.
//
// Flow: 1. NewClient takes the standard Consul environment, puts Options over
// it and gives every request a timeout; 2. Login trades a bearer for a token;
// 3. WaitReplicated makes sure that any server knows the token; 4. Logout
// destroys it; 5. Classify says which errors a retry may mend, Advise what the
// user can do about refusals; 6. Session is all of this for one container, with
// retries.
//
// Owns: api.NewClient, login and logout, error classes.
// Never does: choose a limit for a flow.
// Start reading at: NewClient, then Classify.
package consulutil

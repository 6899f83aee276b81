// Package healthsync copies the ECS health of a task's containers into Consul
// TTL checks, and takes the task out of traffic when it ends.
//
// Flow: 1. wait for mesh-init, the service token and the first metadata answer; 2. each
// tick read the metadata and let diff choose the checks to write: those that
// changed and those whose TTL wants a refresh; 3. write them; 4. on SIGTERM or
// SIGINT write critical for all checks, or deregister a gateway that leaves by it, with retries,
// or deregister the services at the servers when the agent is gone or there is none; 5. log out the
// tokens, when a client-entrypoint runs the agent not before the applications stopped.
//
// Owns: the checks' status, the latch (no way back to passing after a signal),
// the logout of service-token and, next to an old client script, client-token, and through
// registrar.Renewal the replacement of a service-token that expires (renewal.go).
// Never does: turn silence into a change. While the metadata endpoint is away, the last
// status is kept as long as the task's ports accept connections (evidence.go); without such
// evidence it no longer refreshes the TTL or the session, which expires.
// Start reading at: diff, then Run.
package healthsync

// Package registrar makes a workload known to Consul and keeps its health
// checks there.
//
// Flow: 1. New picks the implementation by the configuration's generation:
// the local agent, or the servers' catalog; 2. Register writes the service and
// its proxy; 3. Proxy reads back what Consul made of the proxy; 4. Set keeps the checks.
//
// Owns: how a workload looks as a registration; that generations differ; the session that
// stands in for TTLs in the catalog (keeper.go, session.go); the replacement of a login's token that
// expires (renewal.go); the passive health check in a service's
// service-defaults (resilience.go).
// Never does: log, except for the session and the token that it keeps in the background, or wait, except for
// a first session (1 s at most) and for an agent to update the proxy's checks (1.5 s at most,
// Publisher as long as it takes). Errors are for consulutil.Classify.
// Start reading at: Registrar; then agent.go and catalog.go (requests), translate.go
// and entries.go (bodies).
package registrar

// Package registrar makes a workload known to Consul and keeps its health
// checks there.
//
// Flow: 1. New picks the implementation by the configuration's generation,
// once; 2. Register writes the service and its proxy; 3. Proxy reads back what
// Consul made of the proxy; 4. EnsureCheck and SetStatus keep the TTL checks.
//
// Owns: how a workload looks as a registration; that generations differ.
// Never does: retry, or log. Errors are for consulutil.Classify.
// Start reading at: Registrar; then agent.go (requests) and translate.go
// (bodies).
package registrar

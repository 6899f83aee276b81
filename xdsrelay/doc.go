// Package xdsrelay connects the Envoy of a task without an agent with the Consul
// servers: Envoy's bootstrap is read once, but servers and tokens change.
//
// Flow: 1. Envoy opens its xDS stream on loopback; 2. the relay connects to the
// current server, trying others until one is reached, and adds the token; 3. bytes
// pass in both directions as they come; 4. the stream ends with the server's status,
// with the connection, or when a new token or set of servers makes it outdated; 5.
// Envoy opens the next one at once, with all its subscriptions.
//
// Owns: which server serves Envoy's stream, and with which token.
// Never does: read messages, choose addresses, obtain tokens, or hold Envoy's
// configuration back: without a server Envoy keeps what it has.
// Start reading at: Relay.ServeHTTP.
package xdsrelay

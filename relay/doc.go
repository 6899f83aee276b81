// Package relay relays Envoy's xDS streams and the task's DNS queries to Consul servers.
//
// An XDS serves a task without an agent: Envoy's bootstrap is read once, but servers and tokens
// change.
//
//  1. Envoy opens its xDS stream on loopback.
//  2. The relay connects to the current server, trying others until one is reached, and adds the
//     token.
//  3. Bytes pass in both directions as they come.
//  4. The stream ends with the server's status, or with the connection. It also ends when a new
//     token or set of servers makes it outdated, or when the server sends nothing or has no
//     leader while another server has one.
//  5. Envoy opens the next one at once, with all its subscriptions.
//
// A memory reads the responses that pass. It answers an Envoy that was started again while no
// server serves.
//
// A DNS serves queries.
//
//  1. Serve receives one.
//  2. The current server gets it as it is, over a connection that queries share. Another server
//     gets it, too, when the first is late.
//  3. The client gets the reply, or the last one to the same question while no server answers.
//
// Owns: which server serves Envoy's stream, and with which token; the resources and the replies
// that were received last.
// Never does: acknowledge configuration, use the API of Consul, choose addresses, obtain tokens,
// change messages that it relays, hold Envoy's configuration back (without a server Envoy keeps
// what it has), or write it anywhere: it has private keys.
// Start reading at: XDS.ServeHTTP, then exchange; DNS.answer, then asker.
package relay

// Package envoy talks to the task's Envoy at its admin address, and relays Envoy's xDS and the
// task's DNS queries to Consul servers.
//
// Flow of a question: 1. ReadBootstrap reads what an Envoy was started with; 2. Ask makes a
// request at its admin address.
//
// Flow of a Relay, for a task without an agent: Envoy's bootstrap is read once, but servers
// and tokens change. 1. Envoy opens its xDS stream on loopback; 2. the relay connects to
// the current server, trying others until one is reached, and adds the token; 3. bytes pass
// in both directions as they come; 4. the stream ends with the server's status, with the
// connection, when a new token or set of servers makes it outdated, or when the server sends
// nothing or has no leader while another server has one; 5. Envoy opens the next one at
// once, with all its subscriptions. A memory reads the responses that pass, and answers an
// Envoy that was started again while no server serves.
//
// Flow of a DNS query: 1. Serve receives it; 2. the current server gets it as it is, over a
// connection that queries share, and another one when that is late; 3. the client gets the
// reply, or the last one to the same question while no server answers.
//
// Owns: what is read of a bootstrap and of admin answers; which server serves Envoy's
// stream, and with which token; the resources and the replies that were got last.
// Never does: change anything in Envoy, acknowledge configuration, use the API of Consul,
// choose addresses, obtain tokens, change messages that it relays, hold Envoy's
// configuration back (without a server Envoy keeps what it has), or write it anywhere: it
// has private keys.
// Start reading at: ReadBootstrap, then Ask; Relay.ServeHTTP, then exchange; DNS.answer, then
// asker.
package envoy

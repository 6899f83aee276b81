// Package clientagent runs the Consul client agent of a task: it gives the
// agent an identity and a configuration, keeps it as long as the other
// containers need it, and ends its identity after it.
//
// Flow: 1. check everything that costs no token; 2. read the task metadata; 3.
// log in, wait until the token is known everywhere, write marker and token; 4.
// write the agent's configuration and start it; 5. on TERM wait for the other
// containers, let the agent leave, end it as soon as the servers know; 6. deregister
// an agent that died, and log out, on every path.
//
// Owns: client-token and its marker, the agent's process, the order at the end.
// Never does: reach Consul through the agent, or take unreadable metadata for
// stopped containers.
// Start reading at: Run, then next.
package clientagent

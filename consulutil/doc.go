// Package consulutil is the only place that makes Consul API clients, and the
// only one that judges Consul's errors.
//
// Flow: 1. NewClient takes the standard Consul environment, puts Options over
// it and gives every request a timeout; 2. Login trades a bearer for a token;
// 3. Logout destroys it; 4. Classify returns what waiting can change about an
// error, Advise what the user can do about refusals; 5. Session is the login of one
// container with retries, from the token of a previous run to the wait for
// replication; 6. Servers finds the servers of a task without an agent, and its clients
// fail over between them; 7. Lock elects one of several processes by a key in Consul.
//
// For users' questions about permissions, ACLReader reads ACL objects for the resolver of
// aclrules, each once, and Authorizer sends the same queries to the server's own ACL engine.
//
// Owns: api.NewClient, login and logout, error classes, the choice of a server, leadership.
// Never does: choose a limit for a flow.
// Start reading at: NewClient, then Classify; ACLReader.
package consulutil

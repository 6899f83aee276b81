// Package tmds reads the ECS task metadata endpoint, version 4.
//
// Flow: 1. GET <base>/task with its own timeout; 2. refuse every status
// but 200 and every body that is too long; 3. hand the body to
// workload.ParseTask, which refuses what is not a task; 4. refuse a task that
// does not list the asking container, whose name GET <base> answers once, if at all.
//
// Owns: the HTTP side of the endpoint, over one connection (conn), which ignores
// proxy variables, because the address is link-local.
// Never does: treat a failed read as an answer. Await ignores it; other callers
// decide.
// Start reading at: Client.Task.
package tmds

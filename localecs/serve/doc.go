// Package serve is a local ECS that somebody else drives: a cluster without
// tasks, and the ECS API in front of it.
//
// Flow: 1. Open makes the region, or a simulated one whose tasks have no
// processes, and a user who may call everything; 2. its API is served on a
// loopback address; 3. Close ends all of it.
//
// Owns: the address outside of the VPC, and the user's exports.
// Never does: decide what the API answers, or how a task runs.
// Start reading at: Open, then Options.open.
package serve

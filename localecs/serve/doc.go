// Package serve is a local ECS that somebody else drives: a cluster without
// tasks, and the ECS API in front of it.
//
// Flow: 1. Open makes the cluster, the control plane, and a user who may call
// everything; 2. a call of the API becomes a task through launcher, which also
// reports how the task is; 3. Close ends all of it.
//
// Owns: what binds the ECS API to real tasks, and the user's exports.
// Never does: decide what the API answers, or how a task runs.
// Start reading at: Open, then launcher.Launch.
package serve

// Package region is the ECS of one account in one region, with tasks that are
// processes: a cluster, the control plane, services, and the ECS API where tasks
// find AWS.
//
// Flow: 1. Open makes the cluster and puts the API in front of it; 2. a call of
// the API becomes a task through launcher, which also reports how the task is; 3.
// Close ends all of it.
//
// Owns: what binds the ECS API to real tasks.
// Never does: decide what the API answers, or how a task runs.
// Start reading at: Open, then launcher.Launch.
package region

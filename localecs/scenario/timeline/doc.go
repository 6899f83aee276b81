// Package timeline notes the moments of each task and draws them.
//
// Flow: 1. Observe takes the cluster's events, the scenario adds what Consul
// shows; 2. Start and Stop draw one table each, a row for each task, in seconds
// since the task's own T0.
//
// Owns: the names of the moments, those of the architecture page's diagrams.
// Never does: judge them.
// Start reading at: Moments.
package timeline

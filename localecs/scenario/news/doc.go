// Package news tells what the cluster and Consul show of a run's tasks, as events.
//
// Flow: 1. the cluster, a watcher of checks and a follower of tokens call
// ClusterChanged, CheckChanged and TokenChanged; 2. each finds its task in the roster,
// notes its moments, and tells.
//
// Owns: which tasks were in traffic. Never does: ask Consul.
// Start reading at: News.
package news

// Package namespaces makes the Enterprise namespaces that running tasks name in
// their tags (spec/agent-mode.md section 8, loop step 4).
//
// Flow: 1. Watcher stands before ECS and sees which tasks clean-up finds
// running; 2. Follow describes those that it has not seen yet, once each; 3. it
// ensures the namespaces that are new, and all of them again after an hour.
//
// Owns: what tags mean for a task's namespace.
// Never does: delete a namespace, or ask anything without admin partitions.
// Start reading at: Watcher.Follow.
package namespaces

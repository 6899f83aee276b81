// Package controlplane is what the ECS API knows: clusters, task definition
// revisions and tasks with their statuses, versions and tags. Who runs the tasks
// is behind a small interface, so that ten thousand of them need no process.
//
// Flow: 1. a method per API call checks its input as AWS does; 2. RunTask makes
// records and hands them to the Launcher; 3. the Launcher reports how each task
// is, and the record's status, version and interface follow; 4. lists and
// descriptions are made of the records, as late as Lag says.
//
// Owns: statuses and versions of tasks, revisions, pages, client tokens.
// Never does: run a task, read a clock, know of HTTP.
// Start reading at: Plane, then run.go and record.go.
package controlplane

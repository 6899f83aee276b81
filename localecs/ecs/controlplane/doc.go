// Package controlplane is the ECS API of one account: clusters, task definition revisions,
// tasks and services, and the JSON 1.1 protocol in front of them. A Launcher behind a small
// interface runs the tasks, so ten thousand of them need no process.
//
// Flow: 1. the handler verifies the signature, takes a token from the call's bucket and decodes
// the input; 2. a method of Plane checks it as AWS does; 3. RunTask makes records and hands them
// to the Launcher, which reports the state of each task; 4. Service.Reconcile decides which tasks
// of a service start and stop; 5. answers are made of the records, delayed by Lag.
//
// Owns: statuses and versions, revisions, deployments, pages, client tokens, AWS's error texts.
// Never does: run a task, listen.
// Start reading at: Plane, then run.go, record.go, reconcile.go and reconcile_loop.go.
package controlplane

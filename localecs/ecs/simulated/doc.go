// Package simulated is a local ECS without processes: the ECS API, STS and IAM in front of tasks
// that only go through the statuses, versions and times of real ones. It needs no privileges,
// and starts ten thousand tasks in a second.
//
// Flow: 1. Open makes the account and a launcher; 2. RunTask hands tasks to the launcher; 3. its one
// goroutine advances them when they are due, as the variable LOCALECS_SIMULATE of a container says.
//
// Owns: the launcher's goroutine and timer, how simulated containers behave.
// Never does: listen, start a process, decide what ECS does (package scheduler does).
// Start reading at: Open, then Task.Advance. Tests get a Simulator from awsutil/awstest.
package simulated

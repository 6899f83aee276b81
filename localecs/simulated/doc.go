// Package simulated is a local ECS without processes: the ECS API, with STS and
// IAM, in front of tasks that only go through the statuses, versions, interfaces
// and times of real ones. It needs no privileges, and ten thousand tasks are
// there in a second.
//
// Flow: 1. Open makes the account and a launcher; 2. RunTask, or World.Run for
// many at once, hands tasks to the launcher; 3. its one goroutine advances them
// when they are due (package life) and reports how they are; 4. World.Exit and
// SetHealth are what happens to them.
//
// Owns: the launcher's goroutine and timer, addresses of tasks.
// Never does: listen, start a process, decide how a task behaves (life).
// Start reading at: Open, then launcher.run. Tests of other packages get a World
// from awsutil/awstest/ecstest.
package simulated

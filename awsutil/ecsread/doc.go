// Package ecsread asks ECS which tasks there are, at a rate that leaves AWS's
// throttle to others.
//
// Flow: 1. New takes the SDK's configuration and a budget of calls a second;
// 2. List pages through the tasks of one desired status; 3. Describe looks tasks
// up by their own IDs, a hundred a call, and keeps what AWS could not
// find; 4. each attempt of the SDK, retries included, waits for the budget and is
// counted.
//
// Owns: the budget, the counts of calls and throttles, what a task ID and a
// cluster's ARN look like.
// Never does: guess. A page that failed fails the list; a task that was not
// answered for is in no answer. RoleUsers returns what it found beside its error.
// Start reading at: Reader.List, then Describe.
package ecsread

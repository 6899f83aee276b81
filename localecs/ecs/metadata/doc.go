// Package metadata is what a task finds at 169.254.170.2: task metadata (versions 3 and 4),
// statistics, task protection and credentials behind one rate limit.
//
// Flow: 1. TaskHandler redirects unclean paths and takes a token from the client's bucket; 2. the
// path gives the endpoint ID; 3. a Lookup turns the ID into Facts and the scheduler's View
// of that moment; 4. both are rendered as the ECS agent on Fargate does, errors included.
//
// Owns: the JSON of tasks and containers, the rate limit.
// Never does: cache, listen, or decide what a task's status is (package scheduler does).
// Start reading at: New, then TaskHandler.
package metadata

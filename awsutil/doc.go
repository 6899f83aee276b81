// Package awsutil talks to AWS for a task: to the metadata endpoint beside it, to STS
// and IAM in the task's name, and to the ECS API.
//
// MetadataClient.Task reads the task metadata endpoint, version 4, over one connection;
// every answer that is not a task listing the asking container, whose name the endpoint
// answers, if at all, is an error. FirstTask, with which commands start that need the task, repeats such
// a read until its limit; AwaitTask and AwaitStopped ignore such answers until a valid one
// is as required.
//
// Signer.Bearer proves to Consul which IAM role the task has: it signs GetRole (or
// GetUser), packs it into the headers of a signed GetCallerIdentity, and encodes that
// request, which Consul's aws-iam auth method sends to AWS. RoleReader reads roles by the
// same signatures.
//
// ECSReader asks ECS which tasks there are, at a rate that leaves AWS's throttle to
// others: List by desired status, Describe by ID, a hundred a call; each attempt of the
// SDK waits for the budget and is counted.
//
// Owns: AWS partitions and endpoints, the bearer's format, the form of task IDs and ARNs.
// Never does: guess, read the environment itself (the SDK does), or retry a login. A page
// that failed fails the list; a task without an answer is in no answer.
// Start reading at: MetadataClient.Task, Signer.Bearer, ECSReader.List.
package awsutil

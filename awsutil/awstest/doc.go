// Package awstest is AWS for tests, in two sizes.
//
// New is STS, IAM and the container credentials endpoint of one role, on loopback. It
// answers what Consul's aws-iam auth method and awsutil ask, and records every request; it
// does not verify signatures.
//
// NewECS is the ECS API with as many tasks as a test wants, none of which has a process. It
// needs no privileges, takes no port unless asked for a URL, and 10,000 tasks are RUNNING
// within a second.
//
//	ecs := awstest.NewECS(t, awstest.ECSOptions{})
//	tasks := ecs.Run(awstest.TaskGroup{Family: "web", Count: 250, Tags: map[string]string{"team": "shop"}})
//	ecs.Stop(tasks[0])                 // as StopTask does
//	client := ecs.Config()             // an aws.Config for AWS's SDK
//
// Run and Stop return when the tasks are RUNNING or STOPPED; any task may be
// named by its ID or its ARN. Stopped tasks are described for an hour, then they
// are MISSING: inside testing/synctest an hour passes by waiting, since Config's
// HTTP client stays within the process. ECSOptions has Lag for answers that are late
// as AWS's are, Throttle, and Timing for tasks that take time; Fail makes chosen
// calls fail. Services work as well: call CreateService through the SDK.
//
// A definition of your own is registered with Register; what its containers do is
// in package localecs/ecs/simulated: the variable LOCALECS_SIMULATE.
//
// Never does: run outside tests.
// Start reading at: New, NewECS.
package awstest

package controlplane

import "time"

// Lag is how late answers are: AWS's are eventually consistent, and say nothing
// about when. Zero is at once.
type Lag struct {
	// New is how long a new task is MISSING in DescribeTasks, and a new service in
	// DescribeServices.
	New time.Duration
	// Interface is how long after it has been attached the interface of a task
	// shows no address.
	Interface time.Duration
	// Tags is how long a new task shows none.
	Tags time.Duration
	// Lists is how old lists of tasks and services are.
	Lists time.Duration
	// Counts is how old the numbers of running and pending tasks are that
	// DescribeServices shows.
	Counts time.Duration
}

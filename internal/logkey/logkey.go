// Package logkey holds the keys of structured log lines, so that one thing has
// one name in every command's log.
package logkey

// The keys, snake_case. Secrets have no key on purpose: they are never logged.
const (
	Accessor    = "accessor_id"
	Address     = "address"
	Attempt     = "attempt"
	AuthMethod  = "auth_method"
	BindingRule = "binding_rule"
	CheckID     = "check_id"
	Checks      = "checks"
	ClusterARN  = "cluster_arn"
	Container   = "container"
	Decision    = "decision"
	Elapsed     = "elapsed"
	Error       = "error"
	ExitCode    = "exit_code"
	Namespace   = "namespace"
	Node        = "node"
	Partition   = "partition"
	Path        = "path"
	PID         = "pid"
	Policy      = "policy"
	Previous    = "previous_status"
	ProxyID     = "proxy_id"
	Reason      = "reason"
	RetryIn     = "retry_in"
	Role        = "role"
	Rule        = "rule"
	ServiceID   = "service_id"
	ServiceName = "service_name"
	Signal      = "signal"
	Status      = "status"
	Step        = "step"
	TaskARN     = "task_arn"
	TaskID      = "task_id"
)

package failure

// runningFailures returns the failures of tasks that have started.
func runningFailures() []Failure {
	return []Failure{
		{
			ID: "CE-HEALTH-TOKEN", Title: "health-sync has no token.",
			Why: "It does not share the volume of mesh-init, runs as another user, or has another bootstrapDir.",
			Fix: "Mount the shared volume in consul-ecs-health-sync at bootstrapDir, and run it as the user of " +
				"mesh-init.",
			signs: []string{"login is enabled but there is no service token",
				"login is enabled but the service token cannot be read"},
		},
		{
			ID: "CE-HEALTH-CRITICAL", Title: "The service stays critical in Consul.",
			Why: "A container of healthSyncContainers is missing in the task, or is not healthy in ECS.",
			Fix: "Correct healthSyncContainers, or the health check of the container that the line names.",
			Show: "aws ecs describe-tasks --cluster CLUSTER --tasks TASK --query " +
				"'tasks[].containers[].[name,healthStatus]'",
			signs: []string{"service stays critical in Consul"},
		},
		{
			ID: "CE-AGENT-EXITED", Title: "The Consul client agent has ended by itself.",
			Why:   "Its configuration is wrong, or it was out of memory. Its last lines are in the same log.",
			Fix:   "Read the lines before this one. For exit code 137, give consul-client more memory.",
			signs: []string{"consul agent exited unexpectedly"},
		},
		{
			ID: "CE-TOKEN-LEFT", Title: "A token was not logged out.",
			Why:   "Consul did not answer at the end of the task. The controller removes the token.",
			Fix:   "Nothing while a controller runs. Without one, remove what is left by gc.",
			Show:  "consul-ecs gc -plan",
			signs: []string{"token was not logged out", "token stays in Consul"},
		},
		{
			ID: "CE-CONTROLLER-LEADER", Title: "The controller has lost its leadership.",
			Why:   "Consul did not answer in time, or somebody removed its lock. Another instance takes over.",
			Fix:   "Nothing if it happens once. If it repeats, look at the load of the Consul servers.",
			signs: []string{"leadership lost"},
		},
		{
			ID: "CE-ENVOY-REJECTED", Title: "Envoy has rejected a part of its configuration.",
			Why: "The versions of Envoy and Consul do not fit, or an escape hatch (envoy_*_json) is not valid. " +
				"Envoy keeps what it had.",
			Fix:   "Compare the versions with docs/COMPATIBILITY.md, and correct the override.",
			Show:  "consul-ecs doctor",
			signs: []string{"Envoy rejected resources"},
		},
		{
			ID: "CE-BROKER-HANDLE", Title: "A handle of the token broker was used by another process.",
			Why:   "Something else in the task's network has redeemed it, or the container was started twice.",
			Fix:   "Treat it as an attack until it is explained: the token is revoked. See docs/TOKENS.md.",
			signs: []string{"the handle was redeemed by another process", "a handle was misused"},
		},
	}
}

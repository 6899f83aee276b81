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
			Why:   "Consul did not answer in time, or its lock was removed. Another instance takes over.",
			Fix:   "Nothing if it happens once. If it repeats, look at the load of the Consul servers.",
			signs: []string{"leadership lost"},
		},
		{
			ID: "CE-REGISTRATION-GONE", Title: "The task is not registered in Consul.",
			Why: "It was deregistered by hand or by another controller. health-sync registers it again within its " +
				"interval.",
			Fix:   "Read the log of consul-ecs-health-sync, and see that only one controller serves the cluster.",
			signs: []string{" is not registered in Consul"},
		},
		{
			ID: "CE-BROKER-HANDLE", Title: "A handle of the token broker was used by another process.",
			Why:   "Something else in the task's network has redeemed it, or the container was started twice.",
			Fix:   "Treat it as an attack until it is explained: the token is revoked. See docs/TOKENS.md.",
			signs: []string{"the handle was redeemed by another process", "a handle was misused"},
		},
	}
}

// proxyFailures returns the failures of Envoy.
func proxyFailures() []Failure {
	return []Failure{
		{
			ID: "CE-ENVOY-REJECTED", Title: "Envoy has rejected a part of its configuration.",
			Why: "The versions of Envoy and Consul do not fit, or an escape hatch (envoy_*_json) is not valid. " +
				"Envoy keeps what it had.",
			Fix:   "Compare the versions with docs/COMPATIBILITY.md, and correct the override.",
			Show:  "consul-ecs doctor",
			signs: []string{"Envoy rejected resources", "envoy rejected resources"},
		},
		{
			ID: "CE-ENVOY-AWAY", Title: "Envoy does not run, or is not ready.",
			Why:   "It waits for mesh-init, has ended, or was killed for its memory (exit code 137).",
			Fix:   "Read the log of the proxy's container. For exit code 137, give it more memory.",
			signs: []string{"envoy's admin interface does not answer", "envoy is not live"},
		},
		{
			ID: "CE-ENVOY-XDS", Title: "Envoy gets no configuration.",
			Why: "No Consul server accepts its stream: the gRPC port, its CA or its TLS setting is wrong, or the " +
				"token was deleted.",
			Fix: "Check consulServers.grpc and the security groups for 8502 or 8503. With agents, look at " +
				"CONSUL_GRPC_ADDR.",
			Show:  "consul-ecs doctor",
			signs: []string{"envoy has no stream to its control plane", "it got no configuration"},
		},
		{
			ID: "CE-ENVOY-CERTIFICATE", Title: "A certificate of Envoy has expired.",
			Why:   "Envoy has not got a new one from Consul for days: it has no stream, or the servers' CA is broken.",
			Fix:   "Look at the stream to the servers and at Consul's CA. A new task gets a new certificate.",
			Show:  "consul connect ca get-config",
			signs: []string{"a certificate of Envoy has expired"},
		},
	}
}

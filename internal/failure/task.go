package failure

// taskFailures returns the failures of configuration and metadata.
func taskFailures() []Failure {
	return []Failure{
		{
			ID: "CE-CONFIG-INVALID", Title: "The configuration is not valid.",
			Why:   "CONSUL_ECS_CONFIG_JSON is no JSON, or has unknown fields or values of a wrong kind.",
			Fix:   "Correct each field that the message names, by its path.",
			Show:  "consul-ecs config validate -file config.json",
			signs: []string{"invalid config: "},
		},
		{
			ID: "CE-CONFIG-GENERATION", Title: "The configuration is one of the other generation.",
			Why: "CONSUL_ECS_GENERATION says agent or agentless, and the configuration has consulServers " +
				"(agentless) or not (agent).",
			Fix:   "Correct CONSUL_ECS_GENERATION or leave it out.",
			Show:  "consul-ecs config validate -file config.json",
			signs: []string{"or leave it unset: the document has consulServers or not"},
		},
		{
			ID: "CE-METADATA-ENV", Title: "The command does not run in an ECS task.",
			Why: "ECS_CONTAINER_METADATA_URI_V4 is missing or was overwritten: the command runs elsewhere, or the " +
				"platform is older than Fargate 1.4.0 or ECS agent 1.39.0.",
			Fix:   "Run it in an ECS task, and remove the variable from the container definition.",
			signs: []string{"this command runs in an ECS task", "want the http:// address that ECS sets"},
		},
		{
			ID: "CE-METADATA-LATE", Title: "The task metadata lack a container of the task.",
			Why:   "The ECS agent has not written the container's state since the task started.",
			Fix:   "Check the ECS agent on the instance. On Fargate, start another task.",
			signs: []string{"ECS has not added it since the task started"},
		},
		{
			ID: "CE-METADATA-AWAY", Title: "The task metadata endpoint does not answer.",
			Why: "The ECS agent is stopped or overloaded, or something in the task blocks 169.254.170.2, such as a " +
				"network rule or a proxy.",
			Fix:  "Remove rules for 169.254.170.2 in the task. On EC2, check the ECS agent.",
			Show: "consul-ecs doctor",
			signs: []string{"only ECS answers there", "read task metadata", "task metadata cannot be read",
				"task metadata unreadable",
				"no task metadata for five minutes"},
		},
	}
}

// volumeFailures returns the failures of the shared volume.
func volumeFailures() []Failure {
	return []Failure{
		{
			ID: "CE-VOLUME-MISSING", Title: "The shared volume of the task is not mounted.",
			Why:   "bootstrapDir is no directory in this container: the mount point is missing or at another path.",
			Fix:   "Add a mount point of the shared volume at bootstrapDir, or correct bootstrapDir.",
			signs: []string{"mount the task's shared volume there"},
		},
		{
			ID: "CE-VOLUME-FULL", Title: "The shared volume is full.",
			Why:   "Another container has filled it, or it is smaller than 50 MB.",
			Fix:   "Increase the size of the volume.",
			signs: []string{"increase the size of the volume"},
		},
		{
			ID: "CE-VOLUME-DENIED", Title: "The container may not use the shared volume.",
			Why: "The container runs as another user than the directory belongs to, or its mount point is read only.",
			Fix: "Run the container as the user that the message names, or remove readOnly from its mount point.",
			signs: []string{"remove readOnly from this container's mount point", " is not writable: ",
				"run this container as a user who may", "and the directory is sticky", "cannot be given to group "},
		},
		{
			ID: "CE-VOLUME-FOREIGN", Title: "A file on the shared volume is not what was written there.",
			Why:   "Another container of the task has replaced a file of consul-ecs, perhaps by a link.",
			Fix:   "Find the container that writes to bootstrapDir, and take the mount from it.",
			signs: []string{"not the file that was written there", "does not have the secret that was written to it"},
		},
	}
}

// startFailures returns the failures of containers at the start.
func startFailures() []Failure {
	return []Failure{
		{
			ID: "CE-REDIRECT-RIGHTS", Title: "The task's traffic cannot be redirected to the proxy.",
			Why: "Transparent proxy needs user 0 and NET_ADMIN, which Fargate does not give.",
			Fix: "Set transparentProxy.enabled to false and name the upstreams. On EC2, give mesh-init user 0 and " +
				"NET_ADMIN.",
			signs: []string{"transparentProxy needs the EC2 launch type", "this container needs user 0, and " +
				"readonlyRootFilesystem must not be true"},
		},
		{
			ID: "CE-REDIRECT-KERNEL", Title: "The host's kernel cannot redirect traffic.",
			Why:   "Transparent proxy needs nf_tables with NAT.",
			Fix:   "Use an instance with a newer kernel, or set transparentProxy.enabled to false.",
			signs: []string{"transparentProxy needs a host whose kernel has nf_tables with NAT"},
		},
		{
			ID: "CE-GATE-IMAGE", Title: "mesh-init was never started.",
			Why: "ECS could not start a container that the others wait for, mostly since its image could not be " +
				"pulled.",
			Fix:   "Read containers[].reason of the stopped task. It names the image or the missing right.",
			Show:  "aws ecs describe-tasks --cluster CLUSTER --tasks TASK",
			signs: []string{"ECS did not start container "},
		},
		{
			ID: "CE-GATE-EXITED", Title: "mesh-init has failed.",
			Why:   "Its own log has the reason: mesh-init could not write it to the volume.",
			Fix:   "Read the log of consul-ecs-mesh-init. Its last line has the cause.",
			signs: []string{"mesh-init failed: container "},
		},
		{
			ID: "CE-GATE-LATE", Title: "A container gave up waiting for mesh-init or the proxy.",
			Why:   "mesh-init still retries, or Envoy has no configuration. The line names what is missing.",
			Fix:   "Read the logs of consul-ecs-mesh-init and of the proxy's container.",
			signs: []string{": still missing: "},
		},
		{
			ID: "CE-PROXY-SETTINGS", Title: "The proxy cannot be started with its settings.",
			Why:   "An envoy_* value of proxy.config, proxy-defaults or service-defaults is not valid.",
			Fix:   "Correct the value that the message names.",
			Show:  "consul config read -kind proxy-defaults -name global",
			signs: []string{"prepare the start of proxy "},
		},
	}
}

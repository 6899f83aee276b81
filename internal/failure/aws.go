package failure

// awsFailures returns what AWS refuses or does not answer.
func awsFailures() []Failure {
	return []Failure{
		{
			ID: "CE-AWS-CLOCK", Title: "AWS refuses signatures because of their time.",
			Why: "The clock of the instance, or that of the Consul servers' network, is more than five minutes off, " +
				"or the request was sent late.",
			Fix:   "Synchronize the clock of the host (chrony, NTP). ClockDrift in the task metadata shows its error.",
			Show:  "consul-ecs doctor",
			signs: []string{"Signature expired", "Signature not yet current", "RequestExpired", "RequestTimeTooSkewed"},
		},
		{
			ID: "CE-AWS-GETROLE", Title: "The task role may not read itself.",
			Why: "With consulLogin.includeEntity, Consul reads the tags of the task role by a request that the task " +
				"has signed.",
			Fix:   "Allow iam:GetRole on the role itself in a policy of the task role.",
			Show:  "consul-ecs admit -check-iam FILE",
			signs: []string{"not authorized to perform: iam:GetRole", "not authorized to perform: iam:GetUser"},
		},
		{
			ID: "CE-AWS-EXPIRED", Title: "The credentials of the task role have expired.",
			Why:   "ECS has not renewed them: the ECS agent is disconnected, or something has cached them.",
			Fix:   "Check the ECS agent on the instance. On Fargate, start another task.",
			signs: []string{"ExpiredToken", "security token included in the request is expired"},
		},
		{
			ID: "CE-AWS-SIGNATURE", Title: "AWS does not accept the signature or the key.",
			Why: "The request was signed for another region or partition than that of its endpoint, or with " +
				"credentials that are no longer valid.",
			Fix: "Correct consulLogin.region and stsEndpoint. Remove AWS_ACCESS_KEY_ID from the container, if it is " +
				"set.",
			signs: []string{"SignatureDoesNotMatch", "InvalidClientTokenId", "UnrecognizedClientException",
				"IncompleteSignature"},
		},
		{
			ID: "CE-AWS-THROTTLED", Title: "AWS throttles the requests.",
			Why:   "Many tasks start at once, or other programs use up the account's rate. The request is repeated.",
			Fix:   "Wait. If it lasts, start fewer tasks at a time or ask AWS for a higher rate.",
			signs: []string{"Throttling", "Rate exceeded", "TooManyRequestsException", "RequestLimitExceeded"},
		},
		{
			ID: "CE-AWS-ECS-DENIED", Title: "The controller may not read ECS.",
			Why: "Its task role lacks ecs:ListTasks, ecs:DescribeTasks or ecs:DescribeTaskDefinition.",
			Fix: "Allow the action that the message names in a policy of the role.",
			signs: []string{"in a policy of this process's role (taskRoleArn)",
				"with a role (taskRoleArn) whose policy allows"},
		},
	}
}

// credentialFailures returns what a task lacks to call AWS.
func credentialFailures() []Failure {
	return []Failure{
		{
			ID: "CE-AWS-REGION", Title: "The AWS region is not known.",
			Why:   "Neither consulLogin.region nor AWS_REGION is set, and the task ARN has none.",
			Fix:   "Set consulLogin.region.",
			signs: []string{"no AWS region"},
		},
		{
			ID: "CE-AWS-CREDENTIALS-AWAY", Title: "The ECS agent gives no credentials of the task role.",
			Why: "The agent has just started, is overloaded, or something in the task blocks 169.254.170.2. The " +
				"request is repeated.",
			Fix:   "Wait. If it lasts, remove rules for 169.254.170.2 in the task. On EC2, check the ECS agent.",
			Show:  "consul-ecs doctor",
			signs: []string{"CredentialsUninitialized", "failed to load credentials"},
		},
		{
			ID: "CE-AWS-CREDENTIALS", Title: "The task has no AWS credentials.",
			Why:  "The task definition has no taskRoleArn, or ECS may not assume the role.",
			Fix:  "Set taskRoleArn, and let ecs-tasks.amazonaws.com assume the role.",
			Show: "consul-ecs admit -check-iam FILE",
			signs: []string{"does the task have a task role?", "no AWS credentials: give the task a task role",
				"there are no AWS credentials", "the task has no task role"},
		},
		{
			ID: "CE-AWS-STS", Title: "AWS STS does not answer the task.",
			Why: "The task's subnet has no route to STS: no NAT gateway and no VPC endpoint, or a security group " +
				"that blocks it.",
			Fix:   "Add a VPC endpoint for sts, or a route to the internet. Check consulLogin.stsEndpoint and region.",
			Show:  "consul-ecs doctor",
			signs: []string{"call sts:GetCallerIdentity"},
		},
	}
}

package failure

// loginFailures returns the refusals of logins and tokens by Consul.
func loginFailures() []Failure {
	return []Failure{
		{
			ID: "CE-AGENT-JOIN", Title: "The task's Consul client agent has not joined the servers.",
			Why: "Its retry_join addresses lead to no server, port 8301 is closed between task and servers (TCP and " +
				"UDP), or the gossip key or CA differs. An agent without servers gives every token no rights.",
			Fix: "Check retryJoin, the security groups for 8301 and 8300, gossip key and CA. The log of " +
				"consul-client has the agent's own lines.",
			Show:  "aws logs tail LOG-GROUP --filter-pattern retry_join",
			signs: []string{"primary-dc-down", "No known Consul servers"},
		},
		{
			ID: "CE-LOGIN-METHOD", Title: "The auth method does not exist in Consul.",
			Why:   "The controller, which creates it, has not run yet, or consulLogin.method has another name.",
			Fix:   "Start consul-ecs controller (with agents: acl-controller). If it runs, correct consulLogin.method.",
			Show:  "consul acl auth-method list",
			signs: []string{"ACL not found: auth method"},
		},
		{
			ID: "CE-LOGIN-TRUST", Title: "The auth method does not trust the task role.",
			Why:   "The role's ARN is not in BoundIAMPrincipalARNs: another path or another account.",
			Fix:   "Give the task a role below the path that the method trusts, or add the ARN to the method.",
			Show:  "consul acl auth-method read -name iam-ecs-service-token",
			signs: []string{"is not trusted"},
		},
		{
			ID: "CE-LOGIN-SERVER-ID", Title: "The login is for another Consul.",
			Why:   "consulLogin.serverIdHeaderValue and ServerIDHeaderValue of the auth method differ.",
			Fix:   "Set both to the same value.",
			Show:  "consul acl auth-method read -name iam-ecs-service-token",
			signs: []string{`missing header "X-Consul-IAM-ServerID"`, `" but got "`},
		},
		{
			ID: "CE-LOGIN-ENTITY", Title: "The auth method wants details of the role, and the task sends none.",
			Why:   "consulLogin.includeEntity is false, and the method has EnableIAMEntityDetails.",
			Fix:   "Set consulLogin.includeEntity to true, its default.",
			signs: []string{`missing header "X-Consul-IAM-GetEntity`},
		},
		{
			ID: "CE-LOGIN-TAG", Title: "The task role has no valid tag with the name of the service.",
			Why: "The binding rule makes the service's name from the tag consul.hashicorp.com.service-name of the " +
				"role, which is missing or not a valid name.",
			Fix:   "Tag the task role (not the task) with consul.hashicorp.com.service-name and the service's name.",
			Show:  "aws iam list-role-tags --role-name ROLE",
			signs: []string{"invalid bind name: "},
		},
	}
}

// signedFailures returns the failures of the request that a login has the servers send to AWS.
func signedFailures() []Failure {
	return []Failure{
		{
			ID: "CE-LOGIN-AWS-AWAY", Title: "The Consul servers do not reach AWS.",
			Why: "They send the request that the task has signed to STS and IAM. Their network has no route to " +
				"them, or AWS does not answer.",
			Fix:   "Give the Consul servers a way to sts and iam: a NAT gateway, or a VPC endpoint for sts.",
			Show:  "curl -sS https://sts.REGION.amazonaws.com on a Consul server",
			signs: []string{"error making request: POST"},
		},
		{
			ID: "CE-LOGIN-AWS", Title: "AWS refused the request that the task signed for its login.",
			Why: "The task role may not call iam:GetRole on itself, its region is wrong, a clock is off, or the " +
				"Consul servers do not reach AWS.",
			Fix: "Allow iam:GetRole on the role, and check consulLogin.region, the clocks and the servers' way to " +
				"AWS.",
			Show:  "consul-ecs doctor",
			signs: []string{"response body is invalid"},
		},
	}
}

// methodFailures returns the refusals that the servers' set-up causes.
func methodFailures() []Failure {
	return []Failure{
		{
			ID: "CE-LOGIN-DATACENTER", Title: "The servers know no such datacenter.",
			Why:   "consulLogin.datacenter is wrong, or the datacenters are not federated.",
			Fix:   "Correct consulLogin.datacenter.",
			Show:  "consul catalog datacenters",
			signs: []string{"No path to datacenter"},
		},
		{
			ID: "CE-LOGIN-FORMAT", Title: "Consul does not understand the login.",
			Why: "This version and that of the Consul servers disagree about the format, or the method is of " +
				"another type.",
			Fix:   "Check that the auth method has type aws-iam and the versions in docs/COMPATIBILITY.md.",
			signs: []string{"invalid token: "},
		},
		{
			ID: "CE-ACL-DISABLED", Title: "The Consul servers have no ACLs.",
			Why:   "The task logs in, and acl.enabled is false in the servers' configuration.",
			Fix:   "Enable ACLs in Consul, or set consulLogin.enabled to false.",
			signs: []string{"ACL support disabled", "enable ACLs in Consul"},
		},
		{
			ID: "CE-ACL-BOOTSTRAP", Title: "Consul's ACLs have no token yet.",
			Why:   "The servers were not bootstrapped.",
			Fix:   "Run consul acl bootstrap once.",
			signs: []string{"ACL system must be bootstrapped"},
		},
		{
			ID: "CE-LOGIN-RULE", Title: "No binding rule gives the login any rights.",
			Why: "The controller has not created the rule, the role or the policy yet, or the role's tags or path " +
				"match no rule.",
			Fix:   "Start the controller. If it runs, tag the task role with consul.hashicorp.com.service-name.",
			Show:  "consul-ecs acl can -login METHOD -entity-name ROLE -entity-tag KEY=VALUE service:NAME write",
			signs: []string{"no binding rule of the auth method matches"},
		},
	}
}

// tokenFailures returns the refusals of tokens.
func tokenFailures() []Failure {
	return []Failure{
		{
			ID: "CE-TOKEN-SERVICE", Title: "The token is not for this service.",
			Why: "The tag consul.hashicorp.com.service-name of the task role is another name than that of the " +
				"service, which is service.name or the family of the task definition in lower case.",
			Fix:   "Make the tag and the name equal.",
			Show:  "aws iam list-role-tags --role-name ROLE",
			signs: []string{"the token needs a service identity for "},
		},
		{
			ID: "CE-TOKEN-NONE", Title: "The request had no token.",
			Why:   "consulLogin.enabled is false, and CONSUL_HTTP_TOKEN is not set.",
			Fix:   "Set consulLogin.enabled to true, or give the container CONSUL_HTTP_TOKEN.",
			signs: []string{"no token was sent", "the request had no token"},
		},
		{
			ID: "CE-TOKEN-UNKNOWN", Title: "Consul does not know the token.",
			Why: "The token was deleted, is of another datacenter, or has not been replicated. A running task logs " +
				"in again by itself.",
			Fix:   "Correct CONSUL_HTTP_TOKEN, if it is set. Otherwise look at the replication of ACLs.",
			Show:  "consul acl token read -self",
			signs: []string{"ACL not found", "consul does not know the"},
		},
		{
			ID: "CE-PARTITION", Title: "Namespaces and partitions need Consul Enterprise.",
			Why:   "A namespace or partition is set, and the servers are Consul CE.",
			Fix:   "Leave out partition and namespace, and -partitions-enabled of the controller.",
			signs: []string{"Consul Enterprise"},
		},
		{
			ID: "CE-CONTROLLER-TOKEN", Title: "The token of a command lacks a right in Consul.",
			Why:   "The policy of CONSUL_HTTP_TOKEN does not allow what the command needs.",
			Fix:   "Add the rule that the message has to the token's policy.",
			Show:  "consul-ecs acl explain acl write",
			signs: []string{"a policy with: ", "Consul hides it from the token"},
		},
		{
			ID: "CE-CONTROLLER-SESSION", Title: "The servers refuse short sessions.",
			Why:   "session_ttl_min of the Consul servers is above 10s.",
			Fix:   "Set session_ttl_min to 10s, its default.",
			signs: []string{"session_ttl_min"},
		},
		{
			ID: "CE-CONSUL-DENIED", Title: "Consul denies the request.",
			Why:   "The token's policies, or those of its roles, do not allow it.",
			Fix:   "Ask which rule decides, and change it.",
			Show:  "consul-ecs acl explain -token-file FILE service:NAME write",
			signs: []string{"Permission denied"},
		},
	}
}

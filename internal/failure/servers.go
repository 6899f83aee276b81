package failure

// ofConsul returns what the errors of requests to Consul have in them.
func ofConsul() []string { return []string{"/v1/"} }

// tlsFailures returns the failures of protocols and certificates.
func tlsFailures() []Failure {
	return []Failure{
		{
			ID: "CE-TLS-CA", Title: "The CA certificate that the task trusts has expired.",
			Why:  "The CA was renewed with the same name, and the task has the old certificate.",
			Fix:  "Give the task the new CA: caCertFile, CONSUL_HTTPS_CACERT_PEM or, with agents, consulCACertFile.",
			Show: "openssl x509 -in CA-FILE -noout -dates",
			signs: []string{"replace the expired CA certificate",
				`(possibly because of "x509: certificate has expired`},
		},
		{
			ID: "CE-TLS-EXPIRED", Title: "A certificate has expired, or is not valid yet.",
			Why:   "The servers' certificate was not renewed, or the clock of this host is off.",
			Fix:   "Renew the certificate of the Consul servers. The CA that the task trusts is not the cause.",
			Show:  "openssl s_client -connect SERVER:8501 </dev/null | openssl x509 -noout -dates",
			signs: []string{"certificate has expired or is not yet valid"},
		},
		{
			ID: "CE-TLS-NAME", Title: "The certificate is for another name.",
			Why:   "The task reaches the servers by a name or address that is not in their certificate.",
			Fix:   "Set tlsServerName to a name in the certificate, such as server.dc1.consul.",
			Show:  "openssl s_client -connect SERVER:8501 </dev/null | openssl x509 -noout -ext subjectAltName",
			signs: []string{"certificate is valid for ", "cannot validate certificate for ", "not valid for any names"},
		},
		{
			ID: "CE-TLS-AUTHORITY", Title: "The certificate is of a CA that the task does not trust.",
			Why: "caCertFile or CONSUL_HTTPS_CACERT_PEM has the CA of another datacenter, or none is set and the " +
				"servers' CA is private.",
			Fix: "Give the task the CA of the servers: consulServers.defaults.caCertFile, CONSUL_HTTPS_CACERT_PEM " +
				"or, with agents, consulCACertFile.",
			Show:  "consul tls ca read, or the secret that the task gets the CA from",
			signs: []string{"certificate signed by unknown authority", "certificate is not trusted"},
		},
		{
			ID: "CE-TLS-FILE", Title: "The CA file cannot be read.",
			Why:   "The path is wrong, the file is on no volume of the container, or it holds no PEM certificate.",
			Fix:   "Correct caCertFile, consulCACertFile or CONSUL_CACERT.",
			signs: []string{"read CA file", "correct consulCACertFile, CONSUL_CACERT and the like"},
		},
		{
			ID: "CE-CONSUL-HTTP", Title: "The server speaks HTTP, and the task HTTPS.",
			Why:   "http.https is true, and the port is the one without TLS (8500).",
			Fix:   "Set consulServers.http.port to the HTTPS port (8501), or http.https to false.",
			signs: []string{"server gave HTTP response to HTTPS client"},
		},
		{
			ID: "CE-CONSUL-HTTPS", Title: "The server speaks HTTPS, and the task HTTP.",
			Why:   "http.https is false, and the port is the one with TLS (8501).",
			Fix:   "Set consulServers.http.https to true, or use the HTTP port (8500).",
			signs: []string{"HTTP request to an HTTPS server", "the Consul server expects HTTPS"},
		},
	}
}

// serverFailures returns the failures of servers.
func serverFailures() []Failure {
	return []Failure{
		{
			ID: "CE-CONSUL-LEADER", Title: "The Consul servers have no leader.",
			Why: "More than half of the servers are away, or an election is under way. A running task keeps its " +
				"state.",
			Fix:   "Bring the servers back. If they run, check ports 8300 and 8301 between them.",
			Show:  "consul operator raft list-peers -stale",
			signs: []string{"No cluster leader", "no cluster leader", "has no leader", "rpc error making call: EOF"},
		},
		{
			ID: "CE-NODE-MISSING", Title: "The node of the ECS cluster is not in the catalog.",
			Why:   "consul-ecs controller creates it, and has not run yet or runs for another cluster.",
			Fix:   "Start consul-ecs controller for this ECS cluster, and read its log.",
			Show:  "consul catalog nodes",
			signs: []string{" is not in the catalog; the controller"},
		},
		{
			ID: "CE-REGISTER-INVALID", Title: "Consul refuses what is to be registered.",
			Why:   "A meta, tag, port or upstream of the service is not valid for this version of Consul.",
			Fix:   "Correct the value that the message names in service or proxy of the configuration.",
			signs: []string{"Invalid Service Meta", "Invalid service address", " occurred:\n\t* ", " occurred: "},
		},
	}
}

// connectionFailures returns the failures of connections to Consul.
func connectionFailures() []Failure {
	return []Failure{
		{
			ID: "CE-CONSUL-DNS", Title: "The name of the Consul servers does not resolve.",
			Why:   "consulServers.hosts is wrong, or the VPC's DNS does not have it (private zone, enableDnsSupport).",
			Fix:   "Correct consulServers.hosts, or associate the private zone with the VPC.",
			Show:  "consul-ecs doctor",
			signs: []string{"consulServers.hosts: "},
		},
		{
			ID: "CE-AGENT-AWAY", Title: "The Consul client agent of the task does not answer.",
			Why:   "consul-client has not started, has ended, or is not ready.",
			Fix:   "Read the log of consul-client.",
			signs: []string{"is the consul-client container running", "agent is gone"},
		},
		{
			ID: "CE-AGENT-REFUSED", Title: "The Consul client agent of the task refuses connections.",
			Why:   "consul-client is still starting, has ended, or has not logged in yet.",
			Fix:   "Read the log of consul-client.",
			signs: []string{"connection refused"}, also: []string{"/v1/agent/"},
		},
		{
			ID: "CE-CONSUL-GRPC", Title: "The gRPC port of the Consul servers cannot be reached.",
			Why: "consulServers.grpc.port is wrong, a security group blocks it, or the servers have none. Envoy " +
				"gets its configuration there.",
			Fix: "Correct consulServers.grpc.port (8502, with TLS 8503), enable it in the servers, and open it for " +
				"the tasks.",
			Show:  "consul-ecs doctor",
			signs: []string{"gRPC of server ", "connect Envoy with a Consul server failed"},
		},
		{
			ID: "CE-CONSUL-REFUSED", Title: "The connection to Consul is refused.",
			Why: "Nothing listens at that address and port: a wrong port, or Consul has ended.",
			Fix: "Check address and port. The servers have 8500 (HTTP), 8501 (HTTPS), 8502 (gRPC) and 8503 (gRPC " +
				"with TLS).",
			Show:  "consul-ecs doctor",
			signs: []string{"connection refused"}, also: ofConsul(),
		},
		{
			ID: "CE-CONSUL-TIMEOUT", Title: "Consul does not answer in time.",
			Why: "A security group or network ACL drops the packets, the address is of another network, or the " +
				"server hangs.",
			Fix:  "Allow the task's security group to reach the servers' ports (8501 and 8503, or 8500 and 8502).",
			Show: "consul-ecs doctor",
			signs: []string{"i/o timeout", "no answer within ", "deadline exceeded", "no route to host",
				"network is unreachable"}, also: ofConsul(),
		},
	}
}

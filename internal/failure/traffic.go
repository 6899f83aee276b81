package failure

// trafficFailures returns what health-sync finds in Envoy's counters, and the upstreams that mesh-init does not find.
func trafficFailures() []Failure {
	return append([]Failure{
		{
			ID: "CE-TRAFFIC-UPSTREAM", Title: "No service has the name of an upstream.",
			Why: "destinationName is misspelt, the service has another datacenter, namespace or partition, or none " +
				"of its tasks has been started yet.",
			Fix:   "Correct destinationName, or start the service.",
			Show:  "consul catalog services",
			signs: []string{"no service has the name of an upstream"},
		},
		{
			ID: "CE-TRAFFIC-DENIED", Title: "Callers are denied by the intentions of the service.",
			Why: "No intention allows the caller, or one denies it. With a default policy of deny each call needs " +
				"one. Callers see \"RBAC: access denied\" (403), \"empty reply\" or \"connection reset\". Envoy " +
				"counts the calls, but does not name the caller.",
			Fix:   "Allow the caller by an intention for the service, if it is to call it.",
			Show:  "consul intention list",
			signs: []string{"callers are denied by the intentions of the service"},
		},
		{
			ID: "CE-TRAFFIC-NO-INSTANCE", Title: "An upstream has no healthy instance.",
			Why: "instances is how many Envoy knows: 0 when the service is not in the mesh or its name is misspelt, " +
				"else the number of those whose checks fail. Callers see 503 \"no healthy upstream\" or " +
				"\"connection reset\".",
			Fix: "Look at the checks of the service in Consul. If it is not there, start it or correct " +
				"destinationName.",
			Show:  "consul-ecs why CALLER SERVICE",
			signs: []string{"an upstream has no healthy instance", "upstreams without a healthy instance"},
		},
		{
			ID: "CE-TRAFFIC-NO-ROUTE", Title: "Requests to an upstream have no route.",
			Why: "The routes of the upstream lead nowhere, or to a service without a cluster in Envoy. Callers see " +
				"404 or 503.",
			Fix:   "Correct the service-router, service-splitter or service-resolver of the upstream.",
			Show:  "consul config list -kind service-router",
			signs: []string{"requests to an upstream have no route"},
		},
		{
			ID: "CE-TRAFFIC-CONNECT", Title: "Connections to instances of an upstream fail.",
			Why: "Refused or closed: an instance has ended, or its application does not listen; then its own " +
				"health-sync has CE-TRAFFIC-APP-REFUSED. Timed out: a security group blocks the proxy's port. " +
				"Callers see 503 \"upstream connect error\" or \"connection reset\".",
			Fix:   "Let the tasks reach each other's proxy port, 20000 by default, and look at the instances' logs.",
			Show:  "consul-ecs why CALLER SERVICE",
			signs: []string{"connections to instances of an upstream fail"},
		},
		{
			ID: "CE-TRAFFIC-TLS", Title: "TLS handshakes with an upstream fail.",
			Why: "The certificates of both proxies are not of the same CA or have ended, a clock is wrong, or " +
				"another service has taken the address.",
			Fix: "Compare the CA roots of the datacenters and the clocks. Restart a task that has lost its xDS " +
				"stream.",
			Show:  "curl $CONSUL_HTTP_ADDR/v1/connect/ca/roots",
			signs: []string{"TLS handshakes with an upstream fail"},
		},
	}, taskTrafficFailures()...)
}

// taskTrafficFailures returns those of a task that is called, or of both tasks.
func taskTrafficFailures() []Failure {
	return []Failure{
		{
			ID: "CE-TRAFFIC-CALLER-TLS", Title: "Callers fail the TLS handshake with the proxy of the service.",
			Why: "A load balancer or another client outside of the mesh uses the proxy's port, or the caller's " +
				"certificate is not of the same CA.",
			Fix: "Give clients outside of the mesh another port or a gateway. For callers in the mesh compare the " +
				"CA roots.",
			signs: []string{"callers fail the TLS handshake with the proxy of the service"},
		},
		{
			ID: "CE-TRAFFIC-APP-REFUSED", Title: "The application does not accept the connections of its proxy.",
			Why: "It listens on another port or address than the line names, or does not run. Callers see 503 " +
				"\"upstream connect error\", \"empty reply\" or \"connection reset\".",
			Fix: "Correct service.port or proxy.localServiceAddress, or let the application listen there.",
			signs: []string{"the application does not accept the connections of its proxy",
				"the application does not accept connections at "},
		},
		{
			ID: "CE-TRAFFIC-TIMEOUT", Title: "Requests time out.",
			Why: "The application is slower than the route's requestTimeout or the proxy's " +
				"local_request_timeout_ms. Callers see 504 \"upstream request timeout\".",
			Fix: "Make the application faster, or raise the limit in service-router, service-resolver or " +
				"service-defaults.",
			signs: []string{"requests time out"},
		},
		{
			ID: "CE-TRAFFIC-RESET", Title: "Requests are reset before their answer.",
			Why:   "The application or its proxy has crashed, was killed, or resets streams. Callers see 502 or 503.",
			Fix:   "Look at the destination's log and at the exit codes of its containers.",
			signs: []string{"requests are reset before their answer"},
		},
		{
			ID: "CE-TRAFFIC-PROTOCOL", Title: "What is sent is not the protocol of the service.",
			Why: "Protocol in service-defaults is http, http2 or grpc, and the application or its caller speaks " +
				"another one. Callers see 400 or 502 \"protocol error\".",
			Fix:   "Correct Protocol in the service-defaults of the service.",
			Show:  "consul config read -kind service-defaults -name SERVICE",
			signs: []string{"what is sent is not the protocol of the service"},
		},
		{
			ID: "CE-TRAFFIC-LIMIT", Title: "A limit of Envoy is reached, and refuses calls.",
			Why: "More connections or waiting requests than the limits of the upstream permit, 1,024 by default. " +
				"Callers see 503 \"overflow\" or \"connection reset\".",
			Fix:   "Add instances, or raise Limits in UpstreamConfig of the caller's service-defaults.",
			Show:  "consul config read -kind service-defaults -name CALLER",
			signs: []string{"a limit of Envoy is reached, and refuses calls"},
		},
	}
}

# Without any provider.
run "agentless_with_tls_and_acls" {
  command = plan

  variables {
    consul_server_hosts      = "consul.example.com"
    tls                      = true
    acls                     = true
    consul_ca_cert_arn       = "arn:ca"
    consul_https_ca_cert_arn = "arn:https"
    http_config              = { port = 443 }
    consul_login             = { includeEntity = false, region = null }
    tls_server_name          = "server.dc1.consul"
  }

  assert {
    condition = jsonencode(output.configuration) == jsonencode({
      consulLogin   = { enabled = true, includeEntity = false, method = "iam-ecs-service-token" }
      consulServers = { defaults = { tls = true, tlsServerName = "server.dc1.consul" }, grpc = { port = 8503 }, hosts = "consul.example.com", http = { https = true, port = 443 }, skipServerWatch = false }
    })
    error_message = jsonencode(output.configuration)
  }
  assert {
    condition     = jsonencode(output.secrets) == jsonencode([{ name = "CONSUL_HTTPS_CACERT_PEM", valueFrom = "arn:https" }, { name = "CONSUL_GRPC_CACERT_PEM", valueFrom = "arn:ca" }])
    error_message = jsonencode(output.secrets)
  }
  assert {
    condition     = length(output.client_secrets) == 0
    error_message = "there is no agent"
  }
}

run "without_tls_no_certificates" {
  command = plan

  variables {
    consul_server_hosts = "consul.example.com"
    consul_ca_cert_arn  = "arn:ca"
  }

  assert {
    condition     = length(output.secrets) == 0 && jsonencode(output.configuration.consulLogin) == "{}"
    error_message = "there is neither TLS nor a login"
  }
}

run "agent_with_everything" {
  command = plan

  variables {
    generation                   = "agent"
    acls                         = true
    tls                          = true
    consul_http_addr             = "https://consul.example.com:8501"
    consul_server_ca_cert_arn    = "arn:rpc"
    consul_https_ca_cert_arn     = "arn:https"
    gossip_key_secret_arn        = "arn:gossip"
    retry_join                   = ["10.0.0.4"]
    consul_primary_datacenter    = "dc0"
    enable_acl_token_replication = true
    audit_logging                = true
    consul_agent_configuration   = "log_level = \"warn\""
  }

  assert {
    condition = jsonencode(output.configuration) == jsonencode({
      consulCACertFile = "/consul/consul-https-ca-cert.pem"
      consulHTTPAddr   = "https://consul.example.com:8501"
      consulLogin      = { enabled = true, method = "iam-ecs-service-token" }
    })
    error_message = jsonencode(output.configuration)
  }
  assert {
    condition     = [for s in output.client_secrets : "${s.name}=${s.valueFrom}"] == ["CONSUL_CACERT_PEM=arn:rpc", "CONSUL_HTTPS_CACERT_PEM=arn:https", "CONSUL_GOSSIP_ENCRYPTION_KEY=arn:gossip"]
    error_message = jsonencode(output.client_secrets)
  }
  assert {
    condition     = join(" ", output.client.arguments) == "-auth-method iam-ecs-client-token -primary-datacenter dc0 -enable-acl-token-replication -audit-logging"
    error_message = join(" ", output.client.arguments)
  }
}

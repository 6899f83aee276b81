# How a task reaches Consul, for modules/render: part of the configuration, secrets, and
# the settings of the agent.
locals {
  agent    = var.generation == "agent"
  https_ca = var.consul_https_ca_cert_arn != "" ? var.consul_https_ca_cert_arn : var.consul_ca_cert_arn
  grpc_ca  = var.consul_grpc_ca_cert_arn != "" ? var.consul_grpc_ca_cert_arn : var.consul_ca_cert_arn
  rpc_ca   = var.consul_server_ca_cert_arn != "" ? var.consul_server_ca_cert_arn : var.consul_ca_cert_arn

  login = merge(
    var.acls ? { enabled = true, method = var.service_token_auth_method_name } : null,
    try({ for k, v in var.consul_login : k => v if v != null }, null),
  )

  servers = {
    hosts           = var.consul_server_hosts
    skipServerWatch = var.skip_server_watch
    defaults = { for k, v in {
      tls           = var.tls
      tlsServerName = var.tls_server_name
      caCertFile    = var.ca_cert_file
    } : k => v if v != "" }
    http = merge({ port = var.tls ? 8501 : 8500, https = var.tls }, try({ for k, v in var.http_config : k => v if v != null }, null))
    grpc = merge({ port = var.tls ? 8503 : 8502 }, try({ for k, v in var.grpc_config : k => v if v != null }, null))
  }

  # client-entrypoint writes the certificates from its secrets to the volume.
  ca_file = local.https_ca != "" ? "/consul/consul-https-ca-cert.pem" : var.tls ? "/consul/consul-ca-cert.pem" : ""

  ca_secrets = var.tls ? concat(
    local.https_ca == "" ? [] : [{ name = "CONSUL_HTTPS_CACERT_PEM", valueFrom = local.https_ca }],
    local.grpc_ca == "" ? [] : [{ name = "CONSUL_GRPC_CACERT_PEM", valueFrom = local.grpc_ca }],
  ) : []
  client_secrets = concat(
    var.tls && local.rpc_ca != "" ? [{ name = "CONSUL_CACERT_PEM", valueFrom = local.rpc_ca }] : [],
    local.https_ca == "" ? [] : [{ name = "CONSUL_HTTPS_CACERT_PEM", valueFrom = local.https_ca }],
    var.gossip_key_secret_arn == "" ? [] : [{ name = "CONSUL_GOSSIP_ENCRYPTION_KEY", valueFrom = var.gossip_key_secret_arn }],
  )
}

output "configuration" {
  description = "The members of `CONSUL_ECS_CONFIG_JSON` that are about Consul's servers and the login."
  value = merge(
    { consulLogin = local.login },
    local.agent ? null : { consulServers = local.servers },
    local.agent && var.consul_http_addr != "" ? { for k, v in { consulHTTPAddr = var.consul_http_addr, consulCACertFile = local.ca_file } : k => v if v != "" } : null,
  )
}

output "secrets" {
  description = "Secrets of all containers that reach Consul."
  value       = local.agent ? [] : local.ca_secrets

  precondition {
    condition     = !anytrue([for s in concat(local.ca_secrets, local.client_secrets) : strcontains(s.valueFrom, "\n") || strcontains(s.valueFrom, "-----BEGIN")])
    error_message = "A variable for the ARN of a CA certificate has the certificate itself: store it in Secrets Manager or as an SSM parameter, and give the ARN."
  }
}

output "client_secrets" {
  description = "Secrets of the agent's container alone."
  value       = local.agent ? local.client_secrets : []
}

output "client" {
  description = "The agent, as `modules/render` takes it."
  value = {
    retry_join    = compact(var.retry_join)
    datacenter    = var.consul_datacenter
    configuration = var.consul_agent_configuration
    arguments = concat(
      var.acls ? ["-auth-method", var.client_token_auth_method_name] : [],
      var.consul_primary_datacenter == "" ? [] : ["-primary-datacenter", var.consul_primary_datacenter],
      var.enable_acl_token_replication ? ["-enable-acl-token-replication"] : [],
      var.audit_logging ? ["-audit-logging"] : [],
    )
  }
}

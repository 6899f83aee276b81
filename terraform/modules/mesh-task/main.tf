locals {
  version = "1.0.0-beta.1"
  agent   = var.generation == "agent"
  tags    = { for k, v in var.tags : k => v if v != null }
  name    = var.consul_service_name != "" ? var.consul_service_name : lower(var.family)

  # Only a task that cannot run on Fargate can have the capability that the redirection needs.
  transparent = coalesce(try(var.consul_ecs_config.transparentProxy.enabled, null), var.enable_transparent_proxy, !local.agent && join(",", var.requires_compatibilities) == "EC2")

  dataplane = var.consul_dataplane_image != null && var.consul_dataplane_image != ""

  service = merge(
    {
      name = local.name
      tags = distinct(compact(var.consul_service_tags))
      port = var.port
      meta = { for k, v in var.consul_service_meta : k => v if v != null }
    },
    { for k, v in { namespace = var.consul_namespace, partition = var.consul_partition } : k => v if v != "" },
    { for k, v in { checks = var.checks } : k => v if try(length(v) > 0, false) },
    try({ for k, v in var.consul_ecs_config.service : k => v if v != null }, null),
  )

  proxy = merge(
    {
      publicListenerPort = var.envoy_public_listener_port
      # Files and maps may have the port as a string.
      upstreams = [for u in var.upstreams : merge(u, { localBindPort = tonumber(u.localBindPort) })]
    },
    local.agent ? null : { healthCheckPort = var.envoy_readiness_port, mode = local.dataplane ? "dataplane" : "direct" },
    try({ for k, v in var.consul_ecs_config.proxy : k => v if v != null }, null),
  )

  transparent_proxy = merge(
    { enabled = local.transparent },
    local.transparent ? {
      excludeInboundPorts  = length(var.exclude_inbound_ports) > 0 ? distinct(var.exclude_inbound_ports) : null # render has the others of the task
      excludeOutboundPorts = distinct(var.exclude_outbound_ports)
      excludeOutboundCIDRs = distinct(var.exclude_outbound_cidrs)
      excludeUIDs          = distinct(var.exclude_uids)
      consulDNS            = { enabled = var.enable_consul_dns }
    } : null,
    try({ for k, v in var.consul_ecs_config.transparentProxy : k => v if v != null }, null),
  )
}

module "connection" {
  source = "../connection"

  generation                     = var.generation
  acls                           = var.acls
  service_token_auth_method_name = var.service_token_auth_method_name
  consul_login                   = try(var.consul_ecs_config.consulLogin, null)
  tls                            = var.tls
  tls_server_name                = var.tls_server_name
  ca_cert_file                   = var.ca_cert_file
  consul_ca_cert_arn             = var.consul_ca_cert_arn
  consul_grpc_ca_cert_arn        = var.consul_grpc_ca_cert_arn
  consul_https_ca_cert_arn       = var.consul_https_ca_cert_arn
  consul_server_hosts            = var.consul_server_hosts
  skip_server_watch              = var.skip_server_watch
  http_config                    = var.http_config
  grpc_config                    = var.grpc_config
  consul_http_addr               = var.consul_http_addr
  consul_server_ca_cert_arn      = var.consul_server_ca_cert_arn
  retry_join                     = var.retry_join
  client_token_auth_method_name  = var.client_token_auth_method_name
  gossip_key_secret_arn          = var.gossip_key_secret_arn
  consul_datacenter              = var.consul_datacenter
  consul_primary_datacenter      = var.consul_primary_datacenter
  enable_acl_token_replication   = var.enable_acl_token_replication
  consul_agent_configuration     = var.consul_agent_configuration
  audit_logging                  = var.audit_logging
}

module "render" {
  source = "../render"

  family                   = var.family
  requires_compatibilities = var.requires_compatibilities
  memory                   = var.memory
  runtime_platform         = var.runtime_platform
  placement_constraints    = var.placement_constraints
  container_definitions    = var.container_definitions
  volumes                  = [for v in var.volumes : v.name]
  configuration = merge(
    module.connection.configuration,
    { service = local.service, proxy = local.proxy },
    local.agent ? null : { transparentProxy = local.transparent_proxy },
    { for k in ["healthSync", "logLevel", "logJSON"] : k => var.consul_ecs_config[k] if can(var.consul_ecs_config[k]) },
  )
  images            = { consul_ecs = var.consul_ecs_image, envoy = var.envoy_image, dataplane = var.consul_dataplane_image, consul = var.consul_image }
  secrets           = module.connection.secrets
  client            = merge(module.connection.client, { secrets = module.connection.client_secrets })
  log_configuration = var.log_configuration
  envoy_concurrency = var.envoy_concurrency
  ignore_containers = var.ignore_containers
  sidecars          = var.sidecars
  shutdown_delay    = var.application_shutdown_delay_seconds == null ? null : "${max(0, var.application_shutdown_delay_seconds)}s"
  tags              = local.tags
  module            = { name = "mesh-task", version = local.version }
}

module "task" {
  source = "../task"

  name                               = var.family
  requires_compatibilities           = var.requires_compatibilities
  cpu                                = var.cpu
  memory                             = var.memory
  container_definitions              = module.render.container_definitions
  volumes                            = module.render.volumes
  volume_configurations              = var.volumes
  runtime_platform                   = var.runtime_platform
  ephemeral_storage                  = var.ephemeral_storage
  placement_constraints              = module.render.placement_constraints
  skip_destroy                       = var.skip_destroy
  tags                               = module.render.tags
  role_tags                          = local.tags
  path                               = var.iam_role_path
  permissions_boundary               = var.permissions_boundary
  restrict_role_trust                = var.restrict_role_trust
  create_task_role                   = var.create_task_role
  create_execution_role              = var.create_execution_role
  task_role                          = var.task_role
  execution_role                     = var.execution_role
  identity                           = { service_name = local.name, namespace = var.consul_namespace }
  acls                               = var.acls
  additional_task_role_policies      = var.additional_task_role_policies
  additional_execution_role_policies = var.additional_execution_role_policies
  ecr_repository_arns                = var.ecr_repository_arns
  kms_key_arns                       = var.kms_key_arns
  enable_execute_command             = var.enable_execute_command
}

locals {
  # Variables that are set and have no effect.
  agentless_only = tomap({
    consul_server_hosts     = var.consul_server_hosts != ""
    skip_server_watch       = var.skip_server_watch
    consul_dataplane_image  = local.dataplane
    tls_server_name         = var.tls_server_name != ""
    ca_cert_file            = var.ca_cert_file != ""
    consul_grpc_ca_cert_arn = var.consul_grpc_ca_cert_arn != ""
    http_config             = try(length(keys(var.http_config)) > 0, false)
    grpc_config             = try(length(keys(var.grpc_config)) > 0, false)
  })
  agent_only = tomap({
    retry_join                                  = length(var.retry_join) > 0
    consul_http_addr                            = var.consul_http_addr != ""
    consul_server_ca_cert_arn                   = var.consul_server_ca_cert_arn != ""
    gossip_key_secret_arn                       = var.gossip_key_secret_arn != ""
    client_token_auth_method_name               = var.client_token_auth_method_name != "iam-ecs-client-token"
    consul_datacenter                           = var.consul_datacenter != "dc1"
    consul_primary_datacenter                   = var.consul_primary_datacenter != ""
    enable_acl_token_replication                = var.enable_acl_token_replication
    consul_agent_configuration                  = var.consul_agent_configuration != ""
    audit_logging                               = var.audit_logging
    consul_image                                = var.consul_image != null
    "consul_ca_cert_arn (without tls)"          = var.tls ? false : var.consul_ca_cert_arn != ""
    "consul_grpc_ca_cert_arn (without tls)"     = var.tls ? false : var.consul_grpc_ca_cert_arn != ""
    "consul_https_ca_cert_arn (without tls)"    = var.tls ? false : var.consul_https_ca_cert_arn != ""
    "envoy_image (with consul_dataplane_image)" = local.dataplane ? var.envoy_image != null : false
  })
  unused = [for name, set in merge(
    local.agent ? local.agentless_only : local.agent_only,
    {
      for name, list in {
        exclude_inbound_ports  = var.exclude_inbound_ports
        exclude_outbound_ports = var.exclude_outbound_ports
        exclude_outbound_cidrs = var.exclude_outbound_cidrs
        exclude_uids           = var.exclude_uids
      } : "${name} (without transparent proxy)" => local.transparent ? false : length(list) > 0
    },
  ) : name if set]
}

check "unused_variables" {
  assert {
    condition     = length(local.unused) == 0
    error_message = "These variables have no effect with generation ${var.generation}: ${nonsensitive(join(", ", local.unused))}."
  }
}

check "applications" {
  assert {
    condition     = length(module.render.warnings) == 0
    error_message = nonsensitive(join("\n", module.render.warnings))
  }
}

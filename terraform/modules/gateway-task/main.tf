locals {
  version = "1.0.0-beta.1"
  agent   = var.generation == "agent"
  tags    = { for k, v in var.tags : k => v if v != null }
  name    = var.consul_service_name != "" ? var.consul_service_name : lower(var.family)

  dataplane = var.consul_dataplane_image != null && var.consul_dataplane_image != ""

  lan_port    = var.lan_port == 0 ? 8443 : var.lan_port
  wan_port    = var.wan_port == 0 ? local.lan_port : var.wan_port
  wan_address = var.lb_enabled ? one(aws_lb.this[*].dns_name) : var.wan_address

  gateway_proxy = merge(
    local.agent ? null : { mode = local.dataplane ? "dataplane" : "direct" },
    try({ for k, v in var.consul_ecs_config.proxy : k => v if v != null }, null),
  )

  gateway = merge(
    {
      kind = var.kind
      name = local.name
      tags = distinct(compact(var.consul_service_tags))
      meta = merge({ for k, v in var.consul_service_meta : k => v if v != null }, var.enable_mesh_gateway_wan_federation ? { consul-wan-federation = "1" } : {})
    },
    var.consul_partition == "" ? null : { namespace = "default", partition = var.consul_partition },
    # Other gateways have no such addresses.
    var.kind != "mesh-gateway" ? null : {
      lanAddress = { address = var.lan_address, port = local.lan_port }
      wanAddress = { address = local.wan_address, port = local.wan_port }
    },
    local.agent ? null : { healthCheckPort = var.envoy_readiness_port },
    { for k, v in { proxy = local.gateway_proxy } : k => v if length(keys(v)) > 0 },
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
  container_definitions    = var.extra_container_definitions
  volumes                  = [for v in var.volumes : v.name]
  configuration = merge(
    module.connection.configuration,
    { gateway = local.gateway },
    # Traffic of a gateway's task is never redirected, and an absent member means enabled.
    local.agent ? null : { transparentProxy = { enabled = false } },
    { for k in ["logLevel", "logJSON"] : k => var.consul_ecs_config[k] if can(var.consul_ecs_config[k]) },
  )
  images            = { consul_ecs = var.consul_ecs_image, envoy = var.envoy_image, dataplane = var.consul_dataplane_image, consul = var.consul_image }
  secrets           = module.connection.secrets
  client            = merge(module.connection.client, { secrets = module.connection.client_secrets })
  log_configuration = var.log_configuration
  envoy_concurrency = var.envoy_concurrency
  ignore_containers = var.ignore_containers
  sidecars = merge(var.sidecars, {
    proxy = merge(try(var.sidecars.proxy, {}), {
      port_mappings = concat([{ containerPort = local.lan_port }], try([for p in var.sidecars.proxy.port_mappings : p], []))
      mount_points = concat(
        [for v in var.volumes : { sourceVolume = v.name, containerPath = v.host_path, readOnly = coalesce(try(v.read_only, null), true) } if try(v.host_path, null) != null],
        try([for m in var.sidecars.proxy.mount_points : m], []),
      )
    })
  })
  tags   = local.tags
  module = { name = "gateway-task", version = local.version }
}

module "task" {
  source = "../task"

  name                               = var.family
  requires_compatibilities           = var.requires_compatibilities
  cpu                                = var.cpu
  memory                             = var.memory
  container_definitions              = module.render.container_definitions
  volumes                            = module.render.volumes
  volume_configurations              = [for v in var.volumes : { for key, value in v : key => value if !contains(["host_path", "read_only"], key) }]
  runtime_platform                   = var.runtime_platform
  ephemeral_storage                  = var.ephemeral_storage
  placement_constraints              = module.render.placement_constraints
  skip_destroy                       = var.skip_destroy
  tags                               = module.render.tags
  role_tags                          = local.tags
  path                               = var.iam_role_path
  permissions_boundary               = var.permissions_boundary
  restrict_role_trust                = var.restrict_role_trust
  identity                           = { service_name = local.name, namespace = var.consul_partition == "" ? "" : "default", gateway_kind = var.kind }
  acls                               = var.acls
  enable_execute_command             = var.enable_execute_command
  additional_task_role_policies      = var.additional_task_role_policies
  additional_execution_role_policies = var.additional_execution_role_policies
  ecr_repository_arns                = var.ecr_repository_arns
  kms_key_arns                       = var.kms_key_arns
}

locals {
  load_balancers = concat(
    [for b in var.custom_load_balancer_config : {
      target_group_arn = b.target_group_arn
      # Either name of the proxy's container is that of the one that there is.
      container_name = contains(["sidecar-proxy", "consul-dataplane"], b.container_name) ? module.render.proxy_container_name : b.container_name
      container_port = b.container_port
    }],
    [for arn in aws_lb_target_group.this[*].arn : {
      target_group_arn = arn
      container_name   = module.render.proxy_container_name
      container_port   = local.lan_port
    }],
  )
  mapped_ports = flatten([for c in module.render.container_definitions : try([for p in c.portMappings : "${c.name}:${p.containerPort}" if can(p.containerPort)], [])])
  missed_ports = [for b in local.load_balancers : "${b.container_name}:${b.container_port}" if !contains(local.mapped_ports, "${b.container_name}:${b.container_port}")]
}

resource "aws_ecs_service" "this" {
  name                               = local.name
  cluster                            = var.ecs_cluster_arn
  task_definition                    = module.task.task_definition.arn
  desired_count                      = var.gateway_count
  launch_type                        = length(var.capacity_provider_strategy) > 0 ? null : var.launch_type
  platform_version                   = var.platform_version
  propagate_tags                     = "TASK_DEFINITION"
  enable_execute_command             = var.enable_execute_command
  wait_for_steady_state              = var.wait_for_steady_state
  deployment_minimum_healthy_percent = var.deployment_minimum_healthy_percent
  deployment_maximum_percent         = var.deployment_maximum_percent
  tags                               = var.service_tags
  # A gateway waits this long for the Consul servers and the controller.
  health_check_grace_period_seconds = var.lb_enabled || length(var.custom_load_balancer_config) > 0 ? 180 : null

  network_configuration {
    subnets          = var.subnets
    security_groups  = concat(var.security_groups, aws_security_group.this[*].id)
    assign_public_ip = var.assign_public_ip
  }

  dynamic "capacity_provider_strategy" {
    for_each = var.capacity_provider_strategy

    content {
      capacity_provider = capacity_provider_strategy.value.capacity_provider
      weight            = capacity_provider_strategy.value.weight
      base              = capacity_provider_strategy.value.base
    }
  }

  dynamic "deployment_circuit_breaker" {
    for_each = var.deployment_circuit_breaker[*]

    content {
      enable   = deployment_circuit_breaker.value.enable
      rollback = deployment_circuit_breaker.value.rollback
    }
  }

  dynamic "ordered_placement_strategy" {
    for_each = var.ordered_placement_strategy

    content {
      type  = ordered_placement_strategy.value.type
      field = ordered_placement_strategy.value.field
    }
  }

  dynamic "load_balancer" {
    for_each = local.load_balancers

    content {
      target_group_arn = load_balancer.value.target_group_arn
      container_name   = load_balancer.value.container_name
      container_port   = load_balancer.value.container_port
    }
  }

  # ECS refuses a target group that no load balancer has.
  depends_on = [aws_lb_listener.this]

  lifecycle {
    precondition {
      condition     = length(local.missed_ports) == 0
      error_message = "custom_load_balancer_config has ${nonsensitive(join(", ", local.missed_ports))}, which the task does not have: take a container and a containerPort of its portMappings, such as ${nonsensitive(module.render.proxy_container_name)}:${local.lan_port}. sidecars.proxy.port_mappings adds ports of the proxy."
    }
  }
}

locals {
  # Variables that are set and have no effect.
  agentless_only = tomap({
    consul_server_hosts     = var.consul_server_hosts != ""
    skip_server_watch       = var.skip_server_watch
    consul_dataplane_image  = local.dataplane
    tls_server_name         = var.tls_server_name != ""
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
      enable_transparent_proxy = coalesce(var.enable_transparent_proxy, false)
      enable_consul_dns        = var.enable_consul_dns
      exclude_inbound_ports    = length(var.exclude_inbound_ports) > 0
      exclude_outbound_ports   = length(var.exclude_outbound_ports) > 0
      exclude_outbound_cidrs   = length(var.exclude_outbound_cidrs) > 0
      exclude_uids             = length(var.exclude_uids) > 0
      lan_address              = var.kind == "mesh-gateway" ? false : var.lan_address != ""
      wan_address              = var.kind == "mesh-gateway" ? false : var.wan_address != ""
      lb_name                  = var.lb_enabled ? false : var.lb_name != null
    },
  ) : name if set]
}

check "containers" {
  assert {
    condition     = length(module.render.warnings) == 0
    error_message = nonsensitive(join("\n", module.render.warnings))
  }
}

check "unused_variables" {
  assert {
    condition     = length(local.unused) == 0
    error_message = "These variables have no effect with kind ${var.kind} and generation ${var.generation}: ${nonsensitive(join(", ", local.unused))}."
  }
}

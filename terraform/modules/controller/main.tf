data "aws_region" "current" {}

locals {
  agent        = var.generation == "agent"
  name         = local.agent ? "consul-acl-controller" : "consul-ecs-controller"
  family       = "${var.name_prefix}-${local.name}"
  service_name = coalesce(var.service_name, local.name)
  tags         = { for k, v in var.tags : k => v if v != null }

  flags = concat(
    var.anonymous_read ? ["-anonymous-read"] : [],
    var.token_ttl == null ? [] : ["-token-ttl", var.token_ttl],
    var.metrics_port == null ? [] : ["-metrics-addr", ":${var.metrics_port}"],
  )

  ca_arn   = local.agent ? var.consul_server_ca_cert_arn : try(coalesce(var.consul_https_ca_cert_arn, var.consul_ca_cert_arn), "")
  ca_name  = local.agent ? "CONSUL_CACERT_PEM" : "CONSUL_HTTPS_CACERT_PEM"
  settings = local.agent ? { CONSUL_HTTP_ADDR = var.consul_server_http_addr } : { CONSUL_ECS_CONFIG_JSON = jsonencode(local.configuration) }

  agent_command = concat(
    ["acl-controller", "-iam-role-path", var.iam_role_path, "-log-level", var.log_level],
    var.consul_partitions_enabled ? ["-partitions-enabled", "-partition", var.consul_partition] : [],
    local.flags,
  )
  command = local.agent ? local.agent_command : concat(["controller"], local.flags)

  configuration = {
    bootstrapDir = "/consul"
    logLevel     = var.log_level
    controller = merge(
      { iamRolePath = var.iam_role_path, partitionsEnabled = var.consul_partitions_enabled },
      var.consul_partitions_enabled ? { partition = var.consul_partition } : {},
    )
    consulServers = {
      hosts           = var.consul_server_hosts
      skipServerWatch = var.skip_server_watch
      defaults        = { tls = var.tls, tlsServerName = var.tls_server_name }
      http            = merge({ port = var.tls ? 8501 : 8500, https = var.tls }, { for k, v in var.http_config : k => v if v != null })
      grpc            = merge({ port = var.tls ? 8503 : 8502 }, { for k, v in var.grpc_config : k => v if v != null })
    }
  }

  secrets = concat(
    [{ name = "CONSUL_HTTP_TOKEN", valueFrom = var.consul_bootstrap_token_secret_arn }],
    [for arn in compact([local.ca_arn]) : { name = local.ca_name, valueFrom = arn }],
    [for name, arn in var.secrets : { name = name, valueFrom = arn } if arn != null],
  )

  # ECS refuses {}, and returns no key that is null.
  log = try(var.log_configuration.logDriver, null) == null ? null : { for k, v in var.log_configuration : k => v if v != null }

  container = {
    name        = local.name
    image       = var.consul_ecs_image
    essential   = true
    command     = local.command
    environment = [for name, value in merge(local.settings, var.environment) : { name = name, value = value } if value != null]
    secrets     = local.secrets

    readonlyRootFilesystem = !var.enable_execute_command
    linuxParameters        = { initProcessEnabled = true, capabilities = { drop = ["ALL"] } }

    startTimeout = var.start_timeout
    stopTimeout  = var.stop_timeout
    restartPolicy = var.restart_policy == null ? null : { for k, v in {
      enabled              = var.restart_policy.enabled
      ignoredExitCodes     = var.restart_policy.ignored_exit_codes
      restartAttemptPeriod = var.restart_policy.restart_attempt_period
    } : k => v if v != null }

    logConfiguration = local.log
    portMappings     = var.metrics_port == null ? null : [{ containerPort = var.metrics_port, hostPort = var.metrics_port, protocol = "tcp" }]
    healthCheck = var.metrics_port == null ? null : {
      command  = ["CMD", "/bin/consul-ecs", "net-dial", "127.0.0.1:${var.metrics_port}"]
      interval = 10, timeout = 5, retries = 3
    }
  }
}

module "containers" {
  source = "../containers"

  container_definitions = concat([local.container], [for c in var.extra_container_definitions : c])
}

resource "aws_ecs_task_definition" "this" {
  family                   = local.family
  requires_compatibilities = var.requires_compatibilities
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory
  task_role_arn            = aws_iam_role.task.arn
  execution_role_arn       = aws_iam_role.execution.arn
  skip_destroy             = var.skip_destroy
  tags                     = local.tags

  container_definitions = jsonencode(module.containers.container_definitions)

  dynamic "runtime_platform" {
    for_each = var.runtime_platform[*]

    content {
      cpu_architecture        = runtime_platform.value.cpu_architecture
      operating_system_family = runtime_platform.value.operating_system_family
    }
  }

  dynamic "ephemeral_storage" {
    for_each = var.ephemeral_storage[*]

    content {
      size_in_gib = ephemeral_storage.value
    }
  }

  dynamic "placement_constraints" {
    for_each = var.placement_constraints

    content {
      type       = placement_constraints.value.type
      expression = placement_constraints.value.expression
    }
  }
}

resource "aws_ecs_service" "this" {
  name                   = local.service_name
  cluster                = var.ecs_cluster_arn
  task_definition        = aws_ecs_task_definition.this.arn
  desired_count          = var.desired_count
  launch_type            = length(var.capacity_provider_strategy) > 0 ? null : var.launch_type
  enable_execute_command = var.enable_execute_command
  propagate_tags         = length(local.tags) > 0 ? "SERVICE" : null
  tags                   = local.tags

  network_configuration {
    subnets          = var.subnets
    security_groups  = var.security_groups
    assign_public_ip = var.assign_public_ip
  }

  dynamic "capacity_provider_strategy" {
    for_each = var.capacity_provider_strategy

    content {
      capacity_provider = capacity_provider_strategy.value.capacity_provider
      base              = capacity_provider_strategy.value.base
      weight            = capacity_provider_strategy.value.weight
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

  # A task that starts before its roles have their policies fails.
  depends_on = [aws_iam_role_policy.task, aws_iam_role_policy.execution, aws_iam_role_policy_attachment.execution]
}

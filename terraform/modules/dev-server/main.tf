data "aws_region" "current" {}

locals {
  tags = { for k, v in var.tags : k => v if v != null }

  # ECS refuses {}, and returns no key that is null.
  log = try(var.log_configuration.logDriver, null) == null ? null : { for k, v in var.log_configuration : k => v if v != null }

  mount = [{ sourceVolume = "consul-data", containerPath = "/consul" }]

  tls_init = {
    name             = "tls-init"
    image            = var.consul_image
    essential        = false
    entryPoint       = ["/bin/sh", "-c"]
    command          = [local.tls_script]
    mountPoints      = local.mount
    secrets          = local.tls_secrets
    logConfiguration = local.log
  }

  server = {
    name             = "consul-server"
    image            = var.consul_image
    essential        = true
    entryPoint       = ["/bin/sh", "-c"]
    command          = [local.server_script]
    mountPoints      = local.mount
    environment      = [{ name = "CONSUL_SERVER_CONFIG", value = jsonencode(local.configuration) }]
    secrets          = length(local.server_secrets) > 0 ? local.server_secrets : null
    dependsOn        = var.tls ? [{ containerName = "tls-init", condition = "SUCCESS" }] : null
    portMappings     = [for port in concat([8300, 8301, 8500], var.tls ? [8501, 8503] : [8502]) : { containerPort = port, hostPort = port, protocol = "tcp" }]
    linuxParameters  = { initProcessEnabled = true }
    logConfiguration = local.log
    healthCheck = {
      command     = ["CMD-SHELL", "curl -sf http://127.0.0.1:8500/v1/status/leader | grep -q :"]
      interval    = 30
      timeout     = 10
      retries     = 5
      startPeriod = 120
    }
  }
}

resource "aws_ecs_task_definition" "this" {
  family                   = var.name
  requires_compatibilities = var.requires_compatibilities
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory
  task_role_arn            = one(aws_iam_role.task[*].arn)
  execution_role_arn       = aws_iam_role.execution.arn
  tags                     = local.tags

  container_definitions = jsonencode(concat(
    [for c in [local.tls_init] : { for k, v in c : k => v if v != null } if var.tls],
    [{ for k, v in local.server : k => v if v != null }],
  ))

  volume {
    name = "consul-data"
  }

  dynamic "runtime_platform" {
    for_each = var.runtime_platform[*]

    content {
      cpu_architecture        = runtime_platform.value.cpu_architecture
      operating_system_family = runtime_platform.value.operating_system_family
    }
  }
}

resource "aws_ecs_service" "this" {
  name                   = var.name
  cluster                = var.ecs_cluster_arn
  task_definition        = aws_ecs_task_definition.this.arn
  desired_count          = 1
  launch_type            = length(var.capacity_provider_strategy) > 0 ? null : var.launch_type
  enable_execute_command = var.enable_execute_command
  wait_for_steady_state  = var.wait_for_steady_state || var.lb_enabled
  propagate_tags         = length(local.tags) > 0 ? "SERVICE" : null
  tags                   = local.tags

  # Two servers with the same name would each be a cluster of one.
  deployment_minimum_healthy_percent = 0
  deployment_maximum_percent         = 100

  network_configuration {
    subnets          = var.subnet_ids
    security_groups  = [aws_security_group.server.id]
    assign_public_ip = var.assign_public_ip
  }

  service_registries {
    registry_arn = aws_service_discovery_service.server.arn
  }

  dynamic "load_balancer" {
    for_each = aws_lb_target_group.this[*].arn

    content {
      target_group_arn = load_balancer.value
      container_name   = "consul-server"
      container_port   = 8500
    }
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

  timeouts {
    create = "${var.consul_server_startup_timeout}s"
    update = "${var.consul_server_startup_timeout}s"
  }

  # A task that starts before its role, its secrets or its load balancer are complete fails.
  depends_on = [aws_iam_role_policy.execution, aws_iam_role_policy.task, aws_secretsmanager_secret_version.this, aws_lb_listener.this]
}

locals {
  tags = { for k, v in var.tags : k => v if v != null }

  # ECS refuses {}, and returns no key that is null.
  log = try(var.log_configuration.logDriver, null) == null ? null : { for k, v in var.log_configuration : k => v if v != null }

  mount = [{ sourceVolume = "consul-data", containerPath = "/consul" }]

  # What both containers have.
  common = {
    image                  = var.consul_image
    readonlyRootFilesystem = var.readonly_root_filesystem ? true : null
    linuxParameters = { for k, v in {
      initProcessEnabled = true
      capabilities       = length(var.drop_capabilities) == 0 ? null : { drop = var.drop_capabilities }
    } : k => v if v != null }
    logConfiguration = local.log
  }

  tls_init = merge(local.common, {
    name        = "tls-init"
    essential   = false
    entryPoint  = ["/bin/sh", "-c"]
    command     = [local.tls_script]
    mountPoints = local.mount
    secrets     = local.tls_secrets
    # It is a time of the container that is waited for.
    startTimeout = var.start_timeout
  })

  server = merge(local.common, {
    name         = "consul-server"
    essential    = true
    entryPoint   = ["/bin/sh", "-c"]
    command      = [local.server_script]
    mountPoints  = concat(local.mount, [{ sourceVolume = "consul-server", containerPath = local.directory }])
    environment  = [for name, value in merge({ CONSUL_SERVER_CONFIG = jsonencode(local.configuration) }, var.environment) : { name = name, value = value } if value != null]
    secrets      = length(local.server_secrets) > 0 ? local.server_secrets : null
    dependsOn    = var.tls ? [{ containerName = "tls-init", condition = "SUCCESS" }] : null
    portMappings = [for port in concat([8300, 8301, 8500], var.tls ? [8501, 8503] : [8502]) : { containerPort = port, hostPort = port, protocol = "tcp" }]
    stopTimeout  = var.stop_timeout
    restartPolicy = var.restart_policy == null ? null : { for k, v in {
      enabled              = var.restart_policy.enabled
      ignoredExitCodes     = var.restart_policy.ignored_exit_codes
      restartAttemptPeriod = var.restart_policy.restart_attempt_period
    } : k => v if v != null }
    healthCheck = {
      command     = ["CMD-SHELL", "curl -sf http://127.0.0.1:8500/v1/status/leader | grep -q :"]
      interval    = 30
      timeout     = 10
      retries     = 5
      startPeriod = 120
    }
  })
}

module "containers" {
  source = "../containers"

  container_definitions = concat([for c in [local.tls_init] : c if var.tls], [local.server], [for c in var.extra_container_definitions : c])
}

resource "aws_ecs_task_definition" "this" {
  family                   = var.name
  requires_compatibilities = var.requires_compatibilities
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory
  task_role_arn            = one(aws_iam_role.task[*].arn)
  execution_role_arn       = aws_iam_role.execution.arn
  skip_destroy             = var.skip_destroy
  tags                     = local.tags

  container_definitions = jsonencode(module.containers.container_definitions)

  volume {
    name = "consul-data"
  }

  volume {
    name = "consul-server"
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

  dynamic "ordered_placement_strategy" {
    for_each = var.ordered_placement_strategy

    content {
      type  = ordered_placement_strategy.value.type
      field = ordered_placement_strategy.value.field
    }
  }

  timeouts {
    create = "${var.consul_server_startup_timeout}s"
    update = "${var.consul_server_startup_timeout}s"
  }

  # A task that starts before its role, its secrets or its load balancer are complete fails.
  depends_on = [
    aws_iam_role_policy.execution, aws_iam_role_policy.task, aws_iam_role_policy_attachment.execution,
    aws_secretsmanager_secret_version.this, aws_lb_listener.this,
  ]
}

# Every option of the service at once, from nothing: a state keeps launch_type.

variables {
  name_prefix                       = "mesh"
  consul_ecs_image                  = "123456789012.dkr.ecr.us-east-1.amazonaws.com/consul-ecs:1"
  ecs_cluster_arn                   = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  subnets                           = ["subnet-1"]
  consul_server_hosts               = "consul.example.com"
  consul_bootstrap_token_secret_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:token-AbCdEf:key::"
}

run "everything" {
  command = apply

  variables {
    requires_compatibilities = ["FARGATE"]
    capacity_provider_strategy = [
      { capacity_provider = "FARGATE_SPOT", weight = 1 },
      { capacity_provider = "FARGATE", base = 1 },
    ]
    runtime_platform            = { cpu_architecture = "ARM64" }
    deployment_circuit_breaker  = {}
    desired_count               = 2
    ephemeral_storage           = 30
    service_name                = "second-controller"
    anonymous_read              = true
    token_ttl                   = "24h"
    metrics_port                = 9102
    permissions_boundary        = "arn:aws:iam::123456789012:policy/boundary"
    environment                 = { AWS_MAX_ATTEMPTS = "5" }
    tags                        = { team = "mesh", absent = null }
    extra_container_definitions = [{ name = "router", image = "router", essential = true, firelensConfiguration = { type = "fluentbit" }, dependsOn = null, linuxParameters = { capabilities = { drop = ["ALL"] } } }]
    log_configuration           = { logDriver = "awsfirelens", options = { Name = "cloudwatch" }, secretOptions = null }

    additional_execution_role_policies = ["arn:aws:iam::123456789012:policy/extra"]
  }

  assert {
    condition     = aws_ecs_service.this.launch_type != "FARGATE" && length(aws_ecs_service.this.capacity_provider_strategy) == 2
    error_message = "A service has a launch type or capacity providers."
  }

  assert {
    condition     = aws_ecs_task_definition.this.runtime_platform[0].cpu_architecture == "ARM64"
    error_message = "The platform differs."
  }

  assert {
    condition     = aws_ecs_service.this.deployment_circuit_breaker[0].rollback && aws_ecs_service.this.desired_count == 2 && aws_ecs_service.this.name == "second-controller"
    error_message = "The service differs."
  }

  assert {
    condition     = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].command == ["controller", "-anonymous-read", "-token-ttl", "24h", "-metrics-addr", ":9102"]
    error_message = "The command differs."
  }

  assert {
    condition     = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].healthCheck.command == ["CMD", "/bin/consul-ecs", "net-dial", "127.0.0.1:9102"]
    error_message = "The health check differs."
  }

  assert {
    condition     = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].logConfiguration == { logDriver = "awsfirelens", options = { Name = "cloudwatch" } }
    error_message = "The log configuration differs."
  }

  assert {
    condition     = aws_iam_role.task.permissions_boundary == var.permissions_boundary && aws_iam_role.execution.permissions_boundary == var.permissions_boundary
    error_message = "The boundary differs."
  }

  assert {
    condition = alltrue([
      for tags in [aws_ecs_service.this.tags, aws_ecs_task_definition.this.tags, aws_iam_role.task.tags, aws_iam_role.execution.tags] : tags == tomap({ team = "mesh" })
    ])
    error_message = "The tags differ."
  }

  assert {
    condition     = aws_iam_role_policy_attachment.execution[0].policy_arn == "arn:aws:iam::123456789012:policy/extra"
    error_message = "The policy is not attached."
  }
}

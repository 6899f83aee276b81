# The load balancer, and the options of the service.

variables {
  ecs_cluster_arn = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  vpc_id          = "vpc-1"
  subnet_ids      = ["subnet-1"]
}

run "everything" {
  command = apply

  variables {
    name                            = "a-server-with-a-name-of-32-chars"
    lb_enabled                      = true
    lb_subnets                      = ["subnet-2", "subnet-3"]
    lb_ingress_rule_cidr_blocks     = ["10.0.0.0/8", "2001:db8::/32"]
    lb_ingress_rule_security_groups = ["sg-1"]
    requires_compatibilities        = ["FARGATE"]
    capacity_provider_strategy      = [{ capacity_provider = "FARGATE_SPOT", weight = 1 }]
    runtime_platform                = { cpu_architecture = "ARM64" }
    deployment_circuit_breaker      = { enable = true, rollback = false }
    consul_server_startup_timeout   = 300
    enable_execute_command          = true
    permissions_boundary            = "arn:aws:iam::123456789012:policy/boundary"
    ecr_repository_arns             = ["arn:aws:ecr:us-east-1:123456789012:repository/consul"]
    tags                            = { team = "mesh", absent = null }
    log_configuration               = { logDriver = "awslogs", options = { awslogs-group = "/mesh", awslogs-region = "us-east-1", awslogs-stream-prefix = "c" }, secretOptions = null }
  }

  assert {
    condition     = aws_ecs_service.this.wait_for_steady_state && aws_ecs_service.this.timeouts.create == "300s"
    error_message = "The apply does not wait for the load balancer's health check."
  }

  assert {
    condition     = [for r in aws_vpc_security_group_ingress_rule.lb_cidr : [coalesce(r.cidr_ipv4, "none"), coalesce(r.cidr_ipv6, "none")]] == [["10.0.0.0/8", "none"], ["none", "2001:db8::/32"]] && length(aws_vpc_security_group_ingress_rule.lb_group) == 1
    error_message = "The rules differ."
  }

  assert {
    condition = alltrue([
      for tags in [aws_lb.this[0].tags, aws_ecs_service.this.tags, aws_security_group.server.tags, aws_iam_role.execution.tags] : tags == tomap({ team = "mesh" })
    ])
    error_message = "The tags differ."
  }

  assert {
    condition = { for s in jsondecode(aws_iam_role_policy.execution.policy).Statement : s.Action[0] => s.Resource } == {
      "logs:CreateLogStream"            = ["arn:aws:logs:us-east-1:123456789012:log-group:/mesh:*"]
      "ecr:BatchCheckLayerAvailability" = ["arn:aws:ecr:us-east-1:123456789012:repository/consul"]
      "ecr:GetAuthorizationToken"       = ["*"]
    }
    error_message = "The execution role differs."
  }

  assert {
    condition     = aws_iam_role.task[0].permissions_boundary == var.permissions_boundary && aws_iam_role.execution.permissions_boundary == var.permissions_boundary
    error_message = "The boundary differs."
  }

  assert {
    condition     = output.lb_dns_name != null && output.lb_security_group_id != null
    error_message = "The outputs differ."
  }
}

run "load_balancers_in_two_vpcs_have_different_names" {
  command = plan

  variables {
    vpc_id     = "vpc-2"
    lb_enabled = true
    lb_subnets = ["subnet-2", "subnet-3"]
  }

  assert {
    condition     = [aws_lb.this[0].name, aws_lb_target_group.this[0].name] == [for n in range(2) : "consul-server-${substr(sha256("vpc-2/server"), 0, 8)}"]
    error_message = "Servers of two VPCs have load balancers of the same name."
  }
}

run "load_balancer_of_a_server_with_a_long_name" {
  command = plan

  variables {
    name       = "internal-server-with-a-name-of-63-characters-for-its-dns-record"
    lb_enabled = true
    lb_subnets = ["subnet-2", "subnet-3"]
  }

  assert {
    condition     = startswith(aws_lb.this[0].name, "consul-internal-server--") && length(aws_lb.this[0].name) == 32
    error_message = aws_lb.this[0].name
  }
}

run "empty_log_configuration_is_none" {
  command = plan

  variables {
    log_configuration = {}
  }

  assert {
    condition     = !can(jsondecode(aws_ecs_task_definition.this.container_definitions)[0].logConfiguration)
    error_message = "ECS refuses a log configuration without driver."
  }
}

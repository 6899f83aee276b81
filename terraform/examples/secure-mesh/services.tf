resource "aws_ecs_service" "this" {
  for_each = {
    web = { task_definition = module.web.task_definition_arn, count = 1 }
    api = { task_definition = module.api.task_definition_arn, count = 2 }
  }

  name            = each.key
  cluster         = var.ecs_cluster_arn
  task_definition = each.value.task_definition
  desired_count   = each.value.count
  launch_type     = "FARGATE"
  propagate_tags  = "TASK_DEFINITION"

  network_configuration {
    subnets         = var.private_subnets
    security_groups = [aws_security_group.tasks.id]
  }

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }
}

resource "aws_security_group" "tasks" {
  name   = "${local.name}-tasks"
  vpc_id = var.vpc_id
}

resource "aws_vpc_security_group_egress_rule" "tasks" {
  security_group_id = aws_security_group.tasks.id
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}

# The public listener of the sidecar proxies, and nothing else.
resource "aws_vpc_security_group_ingress_rule" "tasks" {
  security_group_id            = aws_security_group.tasks.id
  referenced_security_group_id = aws_security_group.tasks.id
  ip_protocol                  = "tcp"
  from_port                    = 20000
  to_port                      = 20000
}

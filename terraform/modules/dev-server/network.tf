resource "aws_service_discovery_private_dns_namespace" "this" {
  name        = local.namespace
  description = "Consul servers of ${var.datacenter}"
  vpc         = var.vpc_id
  tags        = local.tags
}

resource "aws_service_discovery_service" "server" {
  name = var.name
  tags = local.tags

  dns_config {
    namespace_id   = aws_service_discovery_private_dns_namespace.this.id
    routing_policy = "MULTIVALUE"

    dns_records {
      ttl  = 10
      type = "A"
    }
  }
}

# Clients get in by rules that the user adds to the output security_group_id.
resource "aws_security_group" "server" {
  name        = "${var.name}-consul-server"
  description = "Consul server ${var.name}"
  vpc_id      = var.vpc_id
  tags        = local.tags
}

resource "aws_vpc_security_group_egress_rule" "server" {
  security_group_id = aws_security_group.server.id
  description       = "Everything"
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
  tags              = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "server" {
  count                        = var.lb_enabled ? 1 : 0
  security_group_id            = aws_security_group.server.id
  description                  = "HTTP of the load balancer"
  ip_protocol                  = "tcp"
  from_port                    = 8500
  to_port                      = 8500
  referenced_security_group_id = aws_security_group.lb[0].id
  tags                         = local.tags
}

resource "aws_security_group" "lb" {
  count       = var.lb_enabled ? 1 : 0
  name        = "${var.name}-consul-lb"
  description = "Load balancer of Consul server ${var.name}"
  vpc_id      = var.vpc_id
  tags        = local.tags
}

resource "aws_vpc_security_group_egress_rule" "lb" {
  count                        = var.lb_enabled ? 1 : 0
  security_group_id            = aws_security_group.lb[0].id
  description                  = "HTTP of the server"
  ip_protocol                  = "tcp"
  from_port                    = 8500
  to_port                      = 8500
  referenced_security_group_id = aws_security_group.server.id
  tags                         = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "lb_cidr" {
  count             = var.lb_enabled ? length(coalesce(var.lb_ingress_rule_cidr_blocks, [])) : 0
  security_group_id = aws_security_group.lb[0].id
  description       = "HTTP"
  ip_protocol       = "tcp"
  from_port         = 8500
  to_port           = 8500
  cidr_ipv4         = strcontains(var.lb_ingress_rule_cidr_blocks[count.index], ":") ? null : var.lb_ingress_rule_cidr_blocks[count.index]
  cidr_ipv6         = strcontains(var.lb_ingress_rule_cidr_blocks[count.index], ":") ? var.lb_ingress_rule_cidr_blocks[count.index] : null
  tags              = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "lb_group" {
  count                        = var.lb_enabled ? length(coalesce(var.lb_ingress_rule_security_groups, [])) : 0
  security_group_id            = aws_security_group.lb[0].id
  description                  = "HTTP"
  ip_protocol                  = "tcp"
  from_port                    = 8500
  to_port                      = 8500
  referenced_security_group_id = var.lb_ingress_rule_security_groups[count.index]
  tags                         = local.tags
}

# A region has one load balancer and one target group of a name, of up to 32 characters; names of
# security groups and namespaces are unique in their VPC only.
locals {
  lb_name = "consul-${substr(var.name, 0, 16)}-${substr(sha256("${var.vpc_id}/${var.name}"), 0, 8)}"
}

resource "aws_lb" "this" {
  count              = var.lb_enabled ? 1 : 0
  name               = local.lb_name
  internal           = false
  load_balancer_type = "application"
  security_groups    = [aws_security_group.lb[0].id]
  subnets            = var.lb_subnets
  tags               = local.tags
}

resource "aws_lb_target_group" "this" {
  count                = var.lb_enabled ? 1 : 0
  name                 = local.lb_name
  port                 = 8500
  protocol             = "HTTP"
  target_type          = "ip"
  vpc_id               = var.vpc_id
  deregistration_delay = 10
  tags                 = local.tags

  health_check {
    path                = "/v1/status/leader"
    port                = "8500"
    healthy_threshold   = 2
    unhealthy_threshold = 2
    timeout             = 30
    interval            = 60
  }
}

resource "aws_lb_listener" "this" {
  count             = var.lb_enabled ? 1 : 0
  load_balancer_arn = aws_lb.this[0].arn
  port              = 8500
  protocol          = "HTTP"
  tags              = local.tags

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.this[0].arn
  }
}

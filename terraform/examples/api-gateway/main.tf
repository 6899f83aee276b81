locals {
  name = "api-gateway"
  port = 8443 # of the listener in the config entry api-gateway
}

module "gateway" {
  source = "../../modules/gateway-task"

  family                   = local.name
  kind                     = "api-gateway"
  requires_compatibilities = ["FARGATE"]
  gateway_count            = 2
  ecs_cluster_arn          = var.ecs_cluster_arn
  subnets                  = var.private_subnets
  security_groups          = [var.mesh_security_group_id, aws_security_group.gateway.id]
  consul_server_hosts      = var.consul_server_hosts
  acls                     = true
  tls                      = true
  consul_ca_cert_arn       = var.consul_ca_cert_arn
  lan_port                 = local.port
  consul_ecs_image         = var.consul_ecs_image
  enable_execute_command   = false

  # A load balancer of one's own, in place of the module's network load balancer.
  custom_load_balancer_config = [{
    # Through the listener, since ECS refuses a target group that no load balancer has.
    target_group_arn = aws_lb_listener.this.default_action[0].target_group_arn
    container_name   = "sidecar-proxy"
    container_port   = local.port
  }]

  deployment_circuit_breaker = { enable = true, rollback = true }
}

resource "aws_lb" "this" {
  name               = local.name
  load_balancer_type = "application"
  subnets            = var.public_subnets
  security_groups    = [aws_security_group.lb.id]
}

resource "aws_lb_target_group" "this" {
  name                 = local.name
  vpc_id               = var.vpc_id
  target_type          = "ip"
  protocol             = "HTTP"
  port                 = local.port
  deregistration_delay = 30

  health_check {
    path    = "/"
    matcher = "200-499" # any answer of Envoy; routes decide about paths
  }
}

resource "aws_lb_listener" "this" {
  load_balancer_arn = aws_lb.this.arn
  port              = 443
  protocol          = "HTTPS"
  certificate_arn   = var.certificate_arn

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.this.arn
  }
}

resource "aws_security_group" "lb" {
  name   = "${local.name}-lb"
  vpc_id = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "lb" {
  security_group_id = aws_security_group.lb.id
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  cidr_ipv4         = "0.0.0.0/0"
}

resource "aws_vpc_security_group_egress_rule" "lb" {
  security_group_id            = aws_security_group.lb.id
  referenced_security_group_id = aws_security_group.gateway.id
  ip_protocol                  = "tcp"
  from_port                    = local.port
  to_port                      = local.port
}

resource "aws_security_group" "gateway" {
  name   = local.name
  vpc_id = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "gateway" {
  security_group_id            = aws_security_group.gateway.id
  referenced_security_group_id = aws_security_group.lb.id
  ip_protocol                  = "tcp"
  from_port                    = local.port
  to_port                      = local.port
}

data "aws_region" "current" {}

locals {
  name = "dev-mesh"
  logs = {
    logDriver = "awslogs"
    options = {
      awslogs-group         = aws_cloudwatch_log_group.this.name
      awslogs-region        = data.aws_region.current.id
      awslogs-stream-prefix = local.name
    }
  }
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/ecs/${local.name}"
  retention_in_days = 7
}

module "dev_server" {
  source = "../../modules/dev-server"

  name              = local.name
  ecs_cluster_arn   = var.ecs_cluster_arn
  vpc_id            = var.vpc_id
  subnet_ids        = var.private_subnets
  launch_type       = "FARGATE"
  acls              = true
  tls               = true
  log_configuration = local.logs
}

# Clients of the server: its HTTPS API and its gRPC with TLS.
resource "aws_vpc_security_group_ingress_rule" "server" {
  for_each = toset(["8501", "8503"])

  security_group_id            = module.dev_server.security_group_id
  referenced_security_group_id = aws_security_group.tasks.id
  ip_protocol                  = "tcp"
  from_port                    = each.value
  to_port                      = each.value
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

# Connections between sidecar proxies.
resource "aws_vpc_security_group_ingress_rule" "tasks" {
  security_group_id            = aws_security_group.tasks.id
  referenced_security_group_id = aws_security_group.tasks.id
  ip_protocol                  = "tcp"
  from_port                    = 20000
  to_port                      = 20000
}

module "controller" {
  source = "../../modules/controller"

  name_prefix                       = local.name
  consul_ecs_image                  = var.consul_ecs_image
  ecs_cluster_arn                   = var.ecs_cluster_arn
  subnets                           = var.private_subnets
  security_groups                   = [aws_security_group.tasks.id]
  consul_server_hosts               = module.dev_server.server_dns
  consul_bootstrap_token_secret_arn = module.dev_server.bootstrap_token_secret_arn
  tls                               = true
  consul_ca_cert_arn                = module.dev_server.ca_cert_arn
  log_configuration                 = local.logs
}

module "hello" {
  source = "../../modules/mesh-task"

  family                   = "${local.name}-hello"
  consul_service_name      = "hello"
  requires_compatibilities = ["FARGATE"]
  port                     = 9090
  consul_ecs_image         = var.consul_ecs_image
  consul_server_hosts      = module.dev_server.server_dns
  acls                     = true
  tls                      = true
  consul_ca_cert_arn       = module.dev_server.ca_cert_arn
  log_configuration        = local.logs
  container_definitions = [{
    name             = "hello"
    image            = var.hello_image
    entryPoint       = ["/hello"]
    command          = ["api", "127.0.0.1:9090"]
    healthCheck      = { command = ["CMD", "/hello", "get", "http://127.0.0.1:9090/health"], interval = 5 }
    logConfiguration = local.logs
  }]
}

resource "aws_ecs_service" "hello" {
  name            = "hello"
  cluster         = var.ecs_cluster_arn
  task_definition = module.hello.task_definition_arn
  desired_count   = 2
  launch_type     = "FARGATE"
  propagate_tags  = "TASK_DEFINITION"

  network_configuration {
    subnets         = var.private_subnets
    security_groups = [aws_security_group.tasks.id]
  }
}

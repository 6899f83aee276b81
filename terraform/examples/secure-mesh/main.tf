data "aws_region" "current" {}

locals {
  name = "secure-mesh"

  logs = { for stream in ["controller", "web", "api"] : stream => {
    logDriver = "awslogs"
    options = {
      awslogs-group         = aws_cloudwatch_log_group.this.name
      awslogs-region        = data.aws_region.current.id
      awslogs-stream-prefix = stream
    }
  } }

  sidecars = { proxy = { memory_reservation = 128 } }
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/ecs/${local.name}"
  retention_in_days = 30
}

module "controller" {
  source = "../../modules/controller"

  name_prefix                       = local.name
  consul_ecs_image                  = var.images.consul_ecs
  ecs_cluster_arn                   = var.ecs_cluster_arn
  subnets                           = var.private_subnets
  security_groups                   = [aws_security_group.tasks.id]
  consul_server_hosts               = var.consul_server_hosts
  consul_bootstrap_token_secret_arn = var.controller_token_arn
  tls                               = var.tls
  tls_server_name                   = var.tls_server_name
  consul_ca_cert_arn                = var.consul_ca_cert_arn
  metrics_port                      = 9102
  log_configuration                 = local.logs.controller
}

module "web" {
  source = "../../modules/mesh-task"

  family                   = "web"
  requires_compatibilities = ["FARGATE"]
  cpu                      = 512
  memory                   = 1024
  port                     = 8080
  upstreams                = [{ destinationName = "api", localBindPort = 9191 }]
  consul_ecs_image         = var.images.consul_ecs
  consul_server_hosts      = var.consul_server_hosts
  acls                     = true
  tls                      = var.tls
  tls_server_name          = var.tls_server_name
  consul_ca_cert_arn       = var.consul_ca_cert_arn
  log_configuration        = local.logs.web
  sidecars                 = local.sidecars
  container_definitions = [{
    name             = "web"
    image            = var.images.hello
    entryPoint       = ["/hello"]
    command          = ["web", "0.0.0.0:8080", "http://127.0.0.1:9191/"]
    healthCheck      = { command = ["CMD", "/hello", "get", "http://127.0.0.1:8080/health"], interval = 5, timeout = 2, retries = 1 }
    logConfiguration = local.logs.web
  }]
}

module "api" {
  source = "../../modules/mesh-task"

  family                   = "api"
  requires_compatibilities = ["FARGATE"]
  cpu                      = 512
  memory                   = 1024
  port                     = 9090
  consul_ecs_image         = var.images.consul_ecs
  consul_server_hosts      = var.consul_server_hosts
  acls                     = true
  tls                      = var.tls
  tls_server_name          = var.tls_server_name
  consul_ca_cert_arn       = var.consul_ca_cert_arn
  log_configuration        = local.logs.api
  sidecars                 = local.sidecars
  container_definitions = [{
    name             = "api"
    image            = var.images.hello
    entryPoint       = ["/hello"]
    command          = ["api", "127.0.0.1:9090"]
    healthCheck      = { command = ["CMD", "/hello", "get", "http://127.0.0.1:9090/health"], interval = 5, timeout = 2, retries = 1 }
    logConfiguration = local.logs.api
  }]
}

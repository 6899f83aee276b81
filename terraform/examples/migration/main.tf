locals {
  # What the service is in Consul, and what its container is, is the same in both generations.
  name = "api"
  container_definitions = [{
    name        = "api"
    image       = "example/hello:1"
    entryPoint  = ["/hello"]
    command     = ["api", "127.0.0.1:9090"]
    healthCheck = { command = ["CMD", "/hello", "get", "http://127.0.0.1:9090/health"], interval = 5 }
  }]
}

# The service as it was: a Consul client agent in each task.
module "agent" {
  source = "../../modules/mesh-task"

  generation                = "agent"
  family                    = local.name
  requires_compatibilities  = ["FARGATE"]
  port                      = 9090
  consul_ecs_image          = var.consul_ecs_image
  acls                      = true
  tls                       = true
  retry_join                = [var.consul_server_hosts]
  consul_http_addr          = "https://${var.consul_server_hosts}:8501"
  consul_server_ca_cert_arn = var.consul_ca_cert_arn
  gossip_key_secret_arn     = var.gossip_key_secret_arn
  container_definitions     = local.container_definitions
}

# The same service without one: another family, and so another role, with the same name in Consul.
module "agentless" {
  source = "../../modules/mesh-task"

  family                   = "${local.name}-agentless"
  consul_service_name      = local.name
  requires_compatibilities = ["FARGATE"]
  port                     = 9090
  consul_ecs_image         = var.consul_ecs_image
  acls                     = true
  tls                      = true
  consul_server_hosts      = var.consul_server_hosts
  consul_ca_cert_arn       = var.consul_ca_cert_arn
  container_definitions    = local.container_definitions
}

resource "aws_ecs_service" "this" {
  for_each = {
    (local.name)              = { task_definition = module.agent.task_definition_arn, count = var.tasks.agent }
    "${local.name}-agentless" = { task_definition = module.agentless.task_definition_arn, count = var.tasks.agentless }
  }

  name            = each.key
  cluster         = var.ecs_cluster_arn
  task_definition = each.value.task_definition
  desired_count   = each.value.count
  launch_type     = "FARGATE"
  propagate_tags  = "TASK_DEFINITION"

  network_configuration {
    subnets         = var.private_subnets
    security_groups = var.security_groups
  }
}

# Both controllers, as long as there are tasks of both generations.
module "acl_controller" {
  source = "../../modules/acl-controller"

  name_prefix                       = "migration"
  consul_ecs_image                  = var.consul_ecs_image
  ecs_cluster_arn                   = var.ecs_cluster_arn
  subnets                           = var.private_subnets
  security_groups                   = var.security_groups
  consul_bootstrap_token_secret_arn = var.controller_token_arn
  consul_server_http_addr           = "https://${var.consul_server_hosts}:8501"
  consul_server_ca_cert_arn         = var.consul_ca_cert_arn
}

module "controller" {
  source = "../../modules/controller"

  name_prefix                       = "migration"
  consul_ecs_image                  = var.consul_ecs_image
  ecs_cluster_arn                   = var.ecs_cluster_arn
  subnets                           = var.private_subnets
  security_groups                   = var.security_groups
  consul_bootstrap_token_secret_arn = var.controller_token_arn
  consul_server_hosts               = var.consul_server_hosts
  tls                               = true
  consul_ca_cert_arn                = var.consul_ca_cert_arn
}

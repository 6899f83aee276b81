# Tasks whose servers, secrets and images are made in the same apply: the plan knows none of them.

resource "terraform_data" "made" {}

resource "aws_secretsmanager_secret" "ca" {
  name_prefix = "ca"
}

locals {
  servers = "consul-${terraform_data.made.id}.example.com"
  container_definitions = [{
    name       = "web"
    image      = "registry.example.com/${terraform_data.made.id}:1"
    entryPoint = ["/web"]
    command    = ["-servers", local.servers]
  }]
}

module "agentless" {
  source = "../.."

  consul_ecs_image      = "registry.example.com/consul-ecs:1.0.0-beta.1"
  family                = "web"
  port                  = 8080
  acls                  = true
  tls                   = true
  consul_server_hosts   = local.servers
  consul_ca_cert_arn    = aws_secretsmanager_secret.ca.arn
  container_definitions = local.container_definitions
}

module "agent" {
  source = "../.."

  consul_ecs_image          = "registry.example.com/consul-ecs:1.0.0-beta.1"
  generation                = "agent"
  family                    = "web-agent"
  port                      = 8080
  acls                      = true
  tls                       = true
  retry_join                = [local.servers]
  consul_http_addr          = "https://${local.servers}:8501"
  consul_server_ca_cert_arn = aws_secretsmanager_secret.ca.arn
  container_definitions     = local.container_definitions
}

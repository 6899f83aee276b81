# A server and its controller in one apply: the controller's secrets are unknown in its plan.

variable "generation" {
  type = string
}

module "dev_server" {
  source = "../../../dev-server"

  ecs_cluster_arn = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  vpc_id          = "vpc-1"
  subnet_ids      = ["subnet-1"]
  launch_type     = "FARGATE"
  tls             = true
  acls            = true
}

module "controller" {
  source = "../.."

  generation                        = var.generation
  name_prefix                       = "mesh"
  consul_ecs_image                  = "consul-ecs:1"
  ecs_cluster_arn                   = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  subnets                           = ["subnet-1"]
  consul_bootstrap_token_secret_arn = module.dev_server.bootstrap_token_secret_arn
  consul_server_hosts               = var.generation == "agent" ? "" : module.dev_server.server_dns
  consul_ca_cert_arn                = var.generation == "agent" ? "" : module.dev_server.ca_cert_arn
  tls                               = var.generation != "agent"
  consul_server_http_addr           = var.generation == "agent" ? "https://${module.dev_server.server_dns}:8501" : ""
  consul_server_ca_cert_arn         = var.generation == "agent" ? module.dev_server.ca_cert_arn : ""
}

output "token" {
  value = module.dev_server.bootstrap_token_secret_arn
}

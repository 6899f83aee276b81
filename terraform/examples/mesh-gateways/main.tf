# The primary datacenter makes the CA, the gossip key and the token that the other one has, too.
module "dc1_server" {
  source = "../../modules/dev-server"

  name                               = "federation-dc1"
  datacenter                         = "dc1"
  ecs_cluster_arn                    = var.ecs_cluster_arns.dc1
  vpc_id                             = var.vpc_id
  subnet_ids                         = var.private_subnets
  launch_type                        = "FARGATE"
  acls                               = true
  tls                                = true
  gossip_encryption_enabled          = true
  enable_mesh_gateway_wan_federation = true
}

module "dc2_server" {
  source = "../../modules/dev-server"

  name                               = "federation-dc2"
  datacenter                         = "dc2"
  primary_datacenter                 = "dc1"
  primary_gateways                   = ["${module.gateway["dc1"].wan_address}:${module.gateway["dc1"].wan_port}"]
  replication_token                  = module.dc1_server.bootstrap_token_id
  ecs_cluster_arn                    = var.ecs_cluster_arns.dc2
  vpc_id                             = var.vpc_id
  subnet_ids                         = var.private_subnets
  launch_type                        = "FARGATE"
  acls                               = true
  bootstrap_token_arn                = module.dc1_server.bootstrap_token_secret_arn
  generate_bootstrap_token           = false
  tls                                = true
  generate_ca                        = false
  ca_cert_arn                        = module.dc1_server.ca_cert_arn
  ca_key_arn                         = module.dc1_server.ca_key_arn
  gossip_encryption_enabled          = true
  generate_gossip_encryption_key     = false
  gossip_key_secret_arn              = module.dc1_server.gossip_key_arn
  enable_mesh_gateway_wan_federation = true
}

locals {
  # Names, which depend on no resource: the gateway of dc1 is made before the server of dc2.
  servers = { dc1 = module.dc1_server.server_dns, dc2 = module.dc2_server.server_dns }
}

module "gateway" {
  source   = "../../modules/gateway-task"
  for_each = local.servers

  family                             = "mesh-gateway-${each.key}"
  kind                               = "mesh-gateway"
  requires_compatibilities           = ["FARGATE"]
  ecs_cluster_arn                    = var.ecs_cluster_arns[each.key]
  subnets                            = var.private_subnets
  security_groups                    = [aws_security_group.tasks.id]
  consul_ecs_image                   = var.consul_ecs_image
  consul_server_hosts                = each.value
  acls                               = true
  tls                                = true
  consul_ca_cert_arn                 = module.dc1_server.ca_cert_arn
  enable_mesh_gateway_wan_federation = true
  enable_execute_command             = false
  lb_enabled                         = true
  lb_vpc_id                          = var.vpc_id
  lb_subnets                         = var.public_subnets
  lb_ingress_rule_cidr_blocks        = var.lb_ingress_rule_cidr_blocks
}

module "controller" {
  source   = "../../modules/controller"
  for_each = local.servers

  name_prefix                       = each.key
  consul_ecs_image                  = var.consul_ecs_image
  ecs_cluster_arn                   = var.ecs_cluster_arns[each.key]
  subnets                           = var.private_subnets
  security_groups                   = [aws_security_group.tasks.id]
  consul_server_hosts               = each.value
  consul_bootstrap_token_secret_arn = module.dc1_server.bootstrap_token_secret_arn
  tls                               = true
  consul_ca_cert_arn                = module.dc1_server.ca_cert_arn
}

resource "aws_security_group" "tasks" {
  name   = "federation-tasks"
  vpc_id = var.vpc_id
}

resource "aws_vpc_security_group_egress_rule" "tasks" {
  security_group_id = aws_security_group.tasks.id
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}

# Sidecar proxies, gateways of the same datacenter, and the servers, which reach other
# datacenters through their own gateway.
resource "aws_vpc_security_group_ingress_rule" "tasks" {
  for_each = {
    proxies     = { group = aws_security_group.tasks.id, port = 20000 }
    gateways    = { group = aws_security_group.tasks.id, port = 8443 }
    dc1_servers = { group = module.dc1_server.security_group_id, port = 8443 }
    dc2_servers = { group = module.dc2_server.security_group_id, port = 8443 }
  }

  security_group_id            = aws_security_group.tasks.id
  referenced_security_group_id = each.value.group
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
}

# Clients of the servers, and the gateways, which also forward the servers' RPC.
resource "aws_vpc_security_group_ingress_rule" "servers" {
  for_each = { for pair in setproduct(["dc1", "dc2"], [8300, 8501, 8503]) : "${pair[0]}-${pair[1]}" => {
    group = pair[0] == "dc1" ? module.dc1_server.security_group_id : module.dc2_server.security_group_id
    port  = pair[1]
  } }

  security_group_id            = each.value.group
  referenced_security_group_id = aws_security_group.tasks.id
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
}

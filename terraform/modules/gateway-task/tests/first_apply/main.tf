# Subnets, clients and a gateway in one apply: the subnets' IDs and a client's address are unknown in the plan.

resource "terraform_data" "subnet" {}

module "gateway" {
  source = "../.."

  consul_ecs_image            = "registry.example.com/consul-ecs:1.0.0-beta.1"
  family                      = "edge"
  kind                        = "mesh-gateway"
  ecs_cluster_arn             = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  subnets                     = ["subnet-1"]
  consul_server_hosts         = sensitive("consul.example.com")
  lb_enabled                  = true
  lb_vpc_id                   = "vpc-1"
  lb_subnets                  = ["subnet-${length(terraform_data.subnet.id)}"]
  lb_ingress_rule_cidr_blocks = ["192.0.2.0/24", "198.51.100.${length(terraform_data.subnet.id)}/32"]
}

# The plan does not know how many subnets there are.
module "open" {
  source = "../.."

  consul_ecs_image    = "registry.example.com/consul-ecs:1.0.0-beta.1"
  family              = "open"
  kind                = "mesh-gateway"
  ecs_cluster_arn     = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  subnets             = split(",", "subnet-${length(terraform_data.subnet.id)}")
  consul_server_hosts = "consul.example.com"
  lb_enabled          = true
  lb_vpc_id           = "vpc-1"
  lb_subnets          = split(",", "subnet-${length(terraform_data.subnet.id)}")
}

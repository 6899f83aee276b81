variable "vpc_id" {
  description = "VPC of both datacenters; they may be in two as well, since only their gateways reach each other."
  type        = string
}

variable "private_subnets" {
  description = "Subnets of the tasks."
  type        = list(string)
}

variable "public_subnets" {
  description = "Subnets of the gateways' load balancers."
  type        = list(string)
}

variable "ecs_cluster_arns" {
  description = "ECS clusters of the datacenters `dc1` and `dc2`."
  type        = object({ dc1 = string, dc2 = string })
}

variable "lb_ingress_rule_cidr_blocks" {
  description = "Addresses that may reach the gateways: those by which the other datacenter leaves its VPC."
  type        = list(string)
}

variable "consul_ecs_image" {
  description = "Image of consul-ecs in your registry."
  type        = string
}

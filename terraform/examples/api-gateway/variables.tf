variable "ecs_cluster_arn" {
  description = "ARN of the ECS cluster."
  type        = string
}

variable "vpc_id" {
  description = "VPC of the tasks."
  type        = string
}

variable "private_subnets" {
  description = "Subnets of the tasks; they reach the registries of the images, CloudWatch Logs and IAM."
  type        = list(string)
}

variable "public_subnets" {
  description = "Subnets of the load balancer."
  type        = list(string)
}

variable "certificate_arn" {
  description = "Certificate of the load balancer's listener, in ACM."
  type        = string
}

variable "consul_server_hosts" {
  description = "Address of the Consul servers without a port."
  type        = string
}

variable "consul_ca_cert_arn" {
  description = "Secret with the CA certificate of the servers."
  type        = string
}

variable "mesh_security_group_id" {
  description = "Security group of the mesh's tasks, such as the output of the example secure-mesh."
  type        = string
}

variable "consul_ecs_image" {
  description = "Image of consul-ecs in your registry."
  type        = string
}

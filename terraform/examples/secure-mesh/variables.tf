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

variable "consul_server_hosts" {
  description = "Address of the Consul servers without a port: an IP address, a DNS name, or `exec=` and a command."
  type        = string
}

variable "controller_token_arn" {
  description = "Secret with the controller's ACL token."
  type        = string
}

variable "tls" {
  description = "The servers have TLS. Switch it off for trials only."
  type        = bool
  default     = true
}

variable "consul_ca_cert_arn" {
  description = "Secret with the CA certificate of the servers. Empty: their certificate is of a public CA."
  type        = string
  default     = ""
}

variable "tls_server_name" {
  description = "Name in the servers' certificate, when it is not `consul_server_hosts`."
  type        = string
  default     = ""
}

variable "images" {
  description = "Images of consul-ecs and of the services."
  type = object({
    consul_ecs = string
    hello      = optional(string, "example/hello:1")
  })
  nullable = false
}

variable "ecs_cluster_arn" {
  description = "ARN of the ECS cluster."
  type        = string
}

variable "private_subnets" {
  description = "Subnets of the tasks; they reach the registries of the images, CloudWatch Logs and IAM."
  type        = list(string)
}

variable "security_groups" {
  description = "Security groups of the tasks. Tasks with an agent need ports 8301 (TCP and UDP, both ways), 8300 and 8501 of the servers, those without 8501 and 8503."
  type        = list(string)
}

variable "tasks" {
  description = "Number of tasks of each generation. Start with those without an agent at 0 and end with the others at 0."
  type = object({
    agent     = number
    agentless = number
  })
  default = { agent = 2, agentless = 0 }

  validation {
    condition     = var.tasks.agent + var.tasks.agentless > 0
    error_message = "tasks needs one task at least: the service would be gone."
  }
}

variable "consul_server_hosts" {
  description = "DNS name or address of the Consul servers without a port."
  type        = string
}

variable "consul_ca_cert_arn" {
  description = "Secret with the CA certificate of the servers."
  type        = string
}

variable "gossip_key_secret_arn" {
  description = "Secret with the gossip key, for tasks with an agent."
  type        = string
}

variable "controller_token_arn" {
  description = "Secret with the ACL token of both controllers."
  type        = string
}

variable "consul_ecs_image" {
  description = "Image of consul-ecs in your registry."
  type        = string
}

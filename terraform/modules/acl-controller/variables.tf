# A variable that is null has the default of modules/controller.

variable "name_prefix" {
  description = "Prefix of the task family and of the IAM roles: `<name_prefix>-consul-acl-controller`."
  type        = string
}

variable "consul_ecs_image" {
  description = "Image of consul-ecs."
  type        = string
}

variable "consul_bootstrap_token_secret_arn" {
  description = "Secret with the controller's ACL token, the bootstrap token or one with the rules of docs/CONTROLLER.md. An SSM parameter is possible, and a JSON key after the ARN."
  type        = string
}

variable "consul_server_http_addr" {
  description = "URL of the Consul servers' HTTP API, such as `https://consul.example.com:8501`."
  type        = string
}

variable "ecs_cluster_arn" {
  description = "ARN of the ECS cluster that the controller runs in and cares for."
  type        = string
}

variable "subnets" {
  description = "Subnets of the controller's task."
  type        = list(string)
}

variable "consul_server_ca_cert_arn" {
  description = "Secret with the CA certificate of the Consul servers."
  type        = string
  default     = null
}

variable "consul_partitions_enabled" {
  description = "Whether the servers are Consul Enterprise and the cluster has an admin partition."
  type        = bool
  default     = null
}

variable "consul_partition" {
  description = "Admin partition of the cluster; used with `consul_partitions_enabled`."
  type        = string
  default     = null
}

variable "iam_role_path" {
  description = "Path of the IAM roles that may log in to Consul: `iam_role_path` of the tasks' modules."
  type        = string
  default     = null
}

variable "region" {
  description = "Accepted and not used: the region is the provider's."
  type        = string
  default     = null
}

variable "security_groups" {
  description = "Security groups of the controller's task; by default the VPC's."
  type        = list(string)
  default     = null
}

variable "assign_public_ip" {
  description = "Whether the task has a public IP address."
  type        = bool
  default     = null
}

variable "launch_type" {
  description = "`FARGATE`, `EC2` or `EXTERNAL`; not used with `capacity_provider_strategy`."
  type        = string
  default     = null
}

variable "requires_compatibilities" {
  description = "Launch types that the task definition is valid for."
  type        = list(string)
  default     = null
}

variable "log_configuration" {
  description = "Log configuration of the container, as in the ECS API."
  type        = any
  default     = null
}

variable "additional_execution_role_policies" {
  description = "ARNs of policies that are attached to the execution role."
  type        = list(string)
  default     = null
}

variable "ecr_repository_arns" {
  description = "Repositories in ECR that the task's images are pulled from."
  type        = list(string)
  default     = null
}

variable "kms_key_arns" {
  description = "KMS keys that the secrets are encrypted with, other than AWS's own."
  type        = list(string)
  default     = null
}

variable "permissions_boundary" {
  description = "ARN of the permissions boundary of both roles."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of everything that the module creates; a null value leaves a tag out."
  type        = map(string)
  default     = null
}

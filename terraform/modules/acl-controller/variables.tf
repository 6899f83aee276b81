# A variable that is null has the default of modules/controller.

variable "name_prefix" {
  description = "Prefix of the task family and of the IAM roles: `<name_prefix>-consul-acl-controller`."
  type        = string
}

variable "consul_ecs_image" {
  description = "Image of consul-ecs in your registry, required: there is no default."
  type        = string
  default     = null
}

variable "consul_bootstrap_token_secret_arn" {
  description = "Secret with the controller's ACL token, the bootstrap token or one with the rules of docs/CONTROLLER.md. An SSM parameter is possible, and a JSON key after the ARN."
  type        = string
}

variable "consul_server_http_addr" {
  description = "URL of the Consul servers' HTTP API, such as `https://consul.example.com:8501`."
  type        = string
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

variable "anonymous_read" {
  description = "Whether requests to Consul without a token may read all services and nodes (docs/SETUP.md has who needs that)."
  type        = bool
  default     = null
}

variable "token_ttl" {
  description = "After what time tokens of tasks expire, `1m` to `24h`, such as the recommended `24h`; null for never. Nothing is set while tasks are running that do not replace their tokens (docs/SETUP.md)."
  type        = string
  default     = null
}

variable "log_level" {
  description = "`TRACE`, `DEBUG`, `INFO`, `WARN` or `ERROR`."
  type        = string
  default     = null
}

variable "metrics_port" {
  description = "Port of `/metrics` and `/healthz`; the container has a health check then."
  type        = number
  default     = null
}

variable "ecs_cluster_arn" {
  description = "ARN of the ECS cluster that the controller runs in and manages."
  type        = string
}

variable "subnets" {
  description = "Subnets of the controller's task."
  type        = list(string)
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

variable "region" {
  description = "Accepted and not used: the region is the provider's."
  type        = string
  default     = null
}

variable "launch_type" {
  description = "`FARGATE`, `EC2` or `EXTERNAL`; not used with `capacity_provider_strategy`."
  type        = string
  default     = null
}

variable "capacity_provider_strategy" {
  description = "Capacity providers of the service, in place of `launch_type`."
  type = list(object({
    capacity_provider = string
    base              = optional(number)
    weight            = optional(number)
  }))
  default = null
}

variable "requires_compatibilities" {
  description = "Launch types that the task definition is valid for."
  type        = list(string)
  default     = null
}

variable "cpu" {
  description = "CPU units of the task."
  type        = number
  default     = null
}

variable "memory" {
  description = "Memory of the task in MiB."
  type        = number
  default     = null
}

variable "runtime_platform" {
  description = "Processor architecture (`X86_64`, `ARM64`) and operating system of the task."
  type = object({
    cpu_architecture        = optional(string)
    operating_system_family = optional(string)
  })
  default = null
}

variable "ephemeral_storage" {
  description = "Ephemeral storage of the task on Fargate in GiB."
  type        = number
  default     = null
}

variable "placement_constraints" {
  description = "Placement constraints of the task definition, on EC2."
  type = list(object({
    type       = string
    expression = optional(string)
  }))
  default = null
}

variable "ordered_placement_strategy" {
  description = "Placement strategies of the service, on EC2."
  type = list(object({
    type  = string
    field = optional(string)
  }))
  default = null
}

variable "skip_destroy" {
  description = "Keep old revisions of the task definition registered."
  type        = bool
  default     = null
}

variable "restart_policy" {
  description = "Whether ECS restarts the container in its task. Null: the task ends with it, and the service starts another one."
  type = object({
    enabled                = optional(bool, true)
    ignored_exit_codes     = optional(list(number))
    restart_attempt_period = optional(number)
  })
  default = null
}

variable "start_timeout" {
  description = "Seconds that ECS waits for containers that this one depends on."
  type        = number
  default     = null
}

variable "stop_timeout" {
  description = "Seconds between TERM and KILL; 30 when null. The controller releases its leadership after TERM."
  type        = number
  default     = null
}

variable "service_name" {
  description = "Name of the ECS service, by default `consul-acl-controller`. A second controller in one cluster needs another one."
  type        = string
  default     = null
}

variable "desired_count" {
  description = "Number of controllers; one leads, the others wait."
  type        = number
  default     = null
}

variable "deployment_circuit_breaker" {
  description = "Whether ECS stops a deployment whose tasks do not start, and whether it rolls back."
  type = object({
    enable   = optional(bool, true)
    rollback = optional(bool, true)
  })
  default = null
}

variable "enable_execute_command" {
  description = "Allow ECS Exec. The container's root filesystem is writable then, which ECS Exec needs."
  type        = bool
  default     = null
}

variable "log_configuration" {
  description = "Log configuration of the container, as in the ECS API."
  type        = any
  default     = null
}

variable "extra_container_definitions" {
  description = "More containers of the task, such as a log router."
  type        = any
  default     = null
}

variable "environment" {
  description = "More environment variables of the container, by name."
  type        = map(string)
  default     = null
}

variable "secrets" {
  description = "More secrets of the container: ARNs by the name of the environment variable."
  type        = map(string)
  default     = null
}

variable "additional_execution_role_policies" {
  description = "ARNs of policies that are attached to the execution role."
  type        = list(string)
  default     = null
}

variable "permissions_boundary" {
  description = "ARN of the permissions boundary of both roles."
  type        = string
  default     = null
}

variable "restrict_role_trust" {
  description = "Whether only ECS tasks of this account and region can assume both roles: the trust policies have conditions on `aws:SourceAccount` and `aws:SourceArn`."
  type        = bool
  default     = true
  nullable    = false
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

variable "tags" {
  description = "Tags of everything that the module creates; a null value leaves a tag out."
  type        = map(string)
  default     = null
}

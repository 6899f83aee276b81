variable "ecs_cluster_arn" {
  description = "ARN of the ECS cluster."
  type        = string
  nullable    = false
}

variable "vpc_id" {
  description = "VPC of the server, its namespace and its load balancer."
  type        = string
  nullable    = false
}

variable "subnet_ids" {
  description = "Subnets of the server's task."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.subnet_ids) > 0
    error_message = "subnet_ids must have at least one subnet."
  }
}

variable "assign_public_ip" {
  description = "Whether the task has a public IP address."
  type        = bool
  default     = false
  nullable    = false
}

variable "launch_type" {
  description = "`EC2` or `FARGATE`; not used with `capacity_provider_strategy`."
  type        = string
  default     = "EC2"
  nullable    = false

  validation {
    condition     = contains(["EC2", "FARGATE"], var.launch_type)
    error_message = "launch_type must be EC2 or FARGATE."
  }
}

variable "capacity_provider_strategy" {
  description = "Capacity providers of the service, in place of `launch_type`."
  type = list(object({
    capacity_provider = string
    base              = optional(number)
    weight            = optional(number)
  }))
  default  = []
  nullable = false
}

variable "requires_compatibilities" {
  description = "Launch types that the task definition is valid for."
  type        = list(string)
  default     = ["EC2", "FARGATE"]
  nullable    = false

  validation {
    condition     = length(var.capacity_provider_strategy) > 0 || contains(var.requires_compatibilities, var.launch_type)
    error_message = "requires_compatibilities must have launch_type, or ECS could not start the task."
  }
}

variable "cpu" {
  description = "CPU units of the task."
  type        = number
  default     = 256
  nullable    = false
}

variable "memory" {
  description = "Memory of the task in MiB."
  type        = number
  default     = 512
  nullable    = false
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
  default  = []
  nullable = false
}

variable "ordered_placement_strategy" {
  description = "Placement of the service's task, on EC2."
  type = list(object({
    type  = string
    field = optional(string)
  }))
  default  = []
  nullable = false
}

variable "skip_destroy" {
  description = "Keep old revisions of the task definition registered."
  type        = bool
  default     = false
  nullable    = false
}

variable "deployment_circuit_breaker" {
  description = "Whether ECS stops a deployment whose task does not start, and whether it rolls back."
  type = object({
    enable   = optional(bool, true)
    rollback = optional(bool, true)
  })
  default = null
}

variable "enable_execute_command" {
  description = "Allow ECS Exec."
  type        = bool
  default     = false
  nullable    = false
}

variable "log_configuration" {
  description = "Log configuration of the containers, as in the ECS API."
  type        = any
  default     = null

  validation {
    condition     = var.log_configuration == null || try(length(keys(var.log_configuration)) == 0, false) || can(var.log_configuration.logDriver)
    error_message = "log_configuration must be an object as in the ECS API, with logDriver and options; null or {} means none."
  }
}

variable "wait_for_steady_state" {
  description = "Wait in an apply until the service is stable. With `lb_enabled` it always waits: the load balancer's health check is that of the server."
  type        = bool
  default     = false
  nullable    = false
}

variable "consul_server_startup_timeout" {
  description = "Seconds that an apply waits for the service."
  type        = number
  default     = 600
  nullable    = false

  validation {
    condition     = var.consul_server_startup_timeout >= 1
    error_message = "consul_server_startup_timeout must be 1 or greater."
  }
}

variable "lb_enabled" {
  description = "Create an application load balancer for the HTTP API and the UI on port 8500."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.lb_enabled || length(coalesce(var.lb_subnets, [])) >= 2
    error_message = "lb_enabled needs lb_subnets, two or more in different zones."
  }
}

variable "lb_subnets" {
  description = "Subnets of the load balancer."
  type        = list(string)
  default     = null
}

variable "lb_ingress_rule_cidr_blocks" {
  description = "Blocks of addresses that may use the load balancer, IPv4 or IPv6."
  type        = list(string)
  default     = null

  validation {
    condition     = alltrue([for block in coalesce(var.lb_ingress_rule_cidr_blocks, []) : can(cidrhost(block, 0))])
    error_message = "lb_ingress_rule_cidr_blocks must be blocks of IPv4 or IPv6 addresses, such as 10.0.0.0/8 or 2001:db8::/32."
  }
}

variable "lb_ingress_rule_security_groups" {
  description = "Security groups that may use the load balancer."
  type        = list(string)
  default     = null
}

variable "permissions_boundary" {
  description = "ARN of the permissions boundary of the roles."
  type        = string
  default     = null
}

variable "restrict_role_trust" {
  description = "Whether only ECS tasks of this account and region can assume the roles: the trust policies have conditions on `aws:SourceAccount` and `aws:SourceArn`."
  type        = bool
  default     = true
  nullable    = false
}

variable "ecr_repository_arns" {
  description = "Repositories in ECR that the image is pulled from."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "kms_key_arn" {
  description = "KMS key of the secrets that the module creates, by default AWS's own."
  type        = string
  default     = null
}

variable "kms_key_arns" {
  description = "KMS keys of secrets that exist already."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "secret_recovery_window_in_days" {
  description = "Days that a destroyed secret can be recovered for: 0, or 7 to 30."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.secret_recovery_window_in_days == 0 || contains(range(7, 31), var.secret_recovery_window_in_days)
    error_message = "secret_recovery_window_in_days must be 0 or a whole number from 7 to 30."
  }
}

variable "tags" {
  description = "Tags of everything that the module creates; a null value leaves a tag out."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = !anytrue([for k in keys(var.tags) : startswith(lower(k), "aws:")])
    error_message = "tags has a key that begins with aws:, which AWS reserves: rename or remove it."
  }
}

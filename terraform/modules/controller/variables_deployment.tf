variable "ecs_cluster_arn" {
  description = "ARN of the ECS cluster that the controller runs in and manages."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^arn:[^:]+:ecs:[^:]+:[^:]+:cluster/", var.ecs_cluster_arn))
    error_message = "ecs_cluster_arn must be the ARN of the cluster: the task role may list the tasks of that ARN only."
  }
}

variable "subnets" {
  description = "Subnets of the controller's task."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.subnets) > 0
    error_message = "subnets must have at least one subnet."
  }
}

variable "security_groups" {
  description = "Security groups of the controller's task; by default the VPC's."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "assign_public_ip" {
  description = "Whether the task has a public IP address."
  type        = bool
  default     = false
  nullable    = false
}

variable "region" {
  description = "Accepted and not used: the region is the provider's."
  type        = string
  default     = null
}

variable "launch_type" {
  description = "`FARGATE`, `EC2` or `EXTERNAL`; not used with `capacity_provider_strategy`."
  type        = string
  default     = "FARGATE"
  nullable    = false

  validation {
    condition     = contains(["FARGATE", "EC2", "EXTERNAL"], var.launch_type)
    error_message = "launch_type must be FARGATE, EC2 or EXTERNAL."
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
  description = "Placement strategies of the service, on EC2."
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
  description = "Name of the ECS service, by default `consul-ecs-controller`, in the generation `agent` `consul-acl-controller`. A second controller in one cluster needs another one."
  type        = string
  default     = null
}

variable "desired_count" {
  description = "Number of controllers; one leads, the others wait."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.desired_count >= 0 && floor(var.desired_count) == var.desired_count
    error_message = "desired_count must be a whole number, 0 or greater."
  }
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
  default     = false
  nullable    = false
}

variable "log_configuration" {
  description = "Log configuration of the container, as in the ECS API."
  type        = any
  default     = null

  validation {
    condition     = var.log_configuration == null || try(length(keys(var.log_configuration)) == 0, false) || can(var.log_configuration.logDriver)
    error_message = "log_configuration must be an object as in the ECS API, with logDriver and options; null or {} means none."
  }
}

variable "extra_container_definitions" {
  description = "More containers of the task, such as a log router."
  type        = any
  default     = []
  nullable    = false

  validation {
    condition     = can([for c in var.extra_container_definitions : c.name])
    error_message = "extra_container_definitions must be a list of containers, each with a name."
  }

  validation {
    condition     = !contains([for c in var.extra_container_definitions : try(c.name, "")], var.generation == "agent" ? "consul-acl-controller" : "consul-ecs-controller")
    error_message = "extra_container_definitions has a container with the name of the controller's: rename it."
  }
}

variable "environment" {
  description = "More environment variables of the container, by name."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "secrets" {
  description = "More secrets of the container: ARNs by the name of the environment variable."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "additional_execution_role_policies" {
  description = "ARNs of policies that are attached to the execution role."
  type        = list(string)
  default     = []
  nullable    = false
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
  default     = []
  nullable    = false
}

variable "kms_key_arns" {
  description = "KMS keys that the secrets are encrypted with, other than AWS's own."
  type        = list(string)
  default     = []
  nullable    = false
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

variable "container_definitions" {
  description = "All containers of the task. The execution role writes to their log groups and reads their secrets."
  type        = any
}

variable "volumes" {
  description = "Names of the volumes."
  type        = list(string)
}

variable "volume_configurations" {
  description = "Settings of volumes, by `name`."
  type        = any
  default     = []
}

variable "requires_compatibilities" {
  description = "Launch types that the task definition must be valid for."
  type        = list(string)
}

variable "cpu" {
  description = "CPU units of the task."
  type        = number
}

variable "memory" {
  description = "Memory of the task in MiB."
  type        = number
}

variable "runtime_platform" {
  description = "Platform of the task."
  type = object({
    cpu_architecture        = optional(string)
    operating_system_family = optional(string)
  })
  default = null
}

variable "ephemeral_storage" {
  description = "Ephemeral storage in GiB."
  type        = number
  default     = null
}

variable "placement_constraints" {
  description = "Placement constraints."
  type = list(object({
    type       = string
    expression = optional(string)
  }))
  default = []
}

variable "skip_destroy" {
  description = "Keep old revisions registered."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of the task definition."
  type        = map(string)
  default     = {}
}

variable "name" {
  description = "Family of the task definition: the roles are `<name>-task` and `<name>-execution`."
  type        = string
}

variable "path" {
  description = "Path of both roles. Consul's auth method trusts the roles at the controller's `iam_role_path`. The last slash may be absent."
  type        = string
  default     = "/consul-ecs/"
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

variable "role_tags" {
  description = "Tags of both roles."
  type        = map(string)
  default     = {}
}

variable "create_task_role" {
  description = "Create the task role."
  type        = bool
  default     = true
  nullable    = false
}

variable "create_execution_role" {
  description = "Create the execution role."
  type        = bool
  default     = true
  nullable    = false
}

variable "task_role" {
  description = "Task role when none is created."
  type = object({
    id  = optional(string)
    arn = optional(string)
  })
  default  = {}
  nullable = false
}

variable "execution_role" {
  description = "Execution role when none is created."
  type = object({
    id  = optional(string)
    arn = optional(string)
  })
  default  = {}
  nullable = false
}

variable "identity" {
  description = "Name, namespace and kind of gateway that Consul's auth method reads from the task role's tags."
  type = object({
    service_name = string
    namespace    = optional(string, "")
    gateway_kind = optional(string, "")
  })
}

variable "acls" {
  description = "The task logs in to Consul, for which it reads its own role."
  type        = bool
  default     = false
  nullable    = false
}

variable "enable_execute_command" {
  description = "Let `aws ecs execute-command` open channels to the task."
  type        = bool
  default     = false
  nullable    = false
}

variable "additional_task_role_policies" {
  description = "ARNs of policies that are attached to the task role."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "additional_execution_role_policies" {
  description = "ARNs of policies that are attached to the execution role."
  type        = list(string)
  default     = []
  nullable    = false
}


variable "ecr_repository_arns" {
  description = "ECR repositories that the execution role pulls from."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "kms_key_arns" {
  description = "KMS keys with which the execution role decrypts secrets."
  type        = list(string)
  default     = []
  nullable    = false
}

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
  description = "Task role when none is created. It is not changed."
  type = object({
    id  = optional(string)
    arn = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.create_task_role || var.task_role.arn != null
    error_message = "create_task_role is false, so task_role needs an arn."
  }
}

variable "execution_role" {
  description = "Execution role when none is created. It is not changed."
  type = object({
    id  = optional(string)
    arn = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.create_execution_role || var.execution_role.arn != null
    error_message = "create_execution_role is false, so execution_role needs an arn."
  }
}

variable "iam_role_path" {
  description = "Path of the roles. It must be the controller's `iam_role_path`: Consul trusts only roles there. With an agent the last slash may be absent, as in 0.6."
  type        = string
  default     = "/consul-ecs/"
  nullable    = false

  validation {
    condition     = can(regex("^(/[!-.0-~]+)+/?$", var.iam_role_path)) && (var.generation == "agent" || endswith(var.iam_role_path, "/")) && length(trimsuffix(var.iam_role_path, "/")) < 512
    error_message = "iam_role_path must be a path such as /consul-ecs/, with a slash at both ends, a name between them and up to 512 ASCII characters without spaces."
  }
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

variable "additional_task_role_policies" {
  description = "ARNs of policies that are attached to the task role."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = var.create_task_role || length(var.additional_task_role_policies) == 0
    error_message = "additional_task_role_policies are attached only to a role that this module creates: attach them to task_role yourself, or set create_task_role = true."
  }
}

variable "additional_execution_role_policies" {
  description = "ARNs of policies that are attached to the execution role."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = var.create_execution_role || length(var.additional_execution_role_policies) == 0
    error_message = "additional_execution_role_policies are attached only to a role that this module creates: attach them to execution_role yourself, or set create_execution_role = true."
  }
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

variable "enable_execute_command" {
  description = "Give the task role the permissions of ECS Exec, which `aws_ecs_service` switches on with its own `enable_execute_command`."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.enable_execute_command || var.create_task_role
    error_message = "enable_execute_command needs create_task_role: a role that is given is not changed."
  }
}

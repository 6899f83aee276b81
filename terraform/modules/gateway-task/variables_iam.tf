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

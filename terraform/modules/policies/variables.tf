variable "container_definitions" {
  description = "All containers of the task, as in the ECS API."
  type        = any
}

variable "secrets" {
  description = "Secrets and parameters that ECS reads for the task in addition to those of its containers, such as the credentials of a volume."
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

variable "restrict_role_trust" {
  description = "Whether only ECS tasks of this account and region can assume the roles: the trust policies have conditions on `aws:SourceAccount` and `aws:SourceArn`."
  type        = bool
  default     = true
  nullable    = false
}

variable "readonly_root_filesystem" {
  description = "Whether the containers cannot write to their root filesystem; what they write is on volumes. ECS Exec needs a writable one."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.readonly_root_filesystem || !var.enable_execute_command
    error_message = "enable_execute_command needs readonly_root_filesystem = false: ECS Exec writes to the root filesystem."
  }
}

variable "drop_capabilities" {
  description = "Capabilities that the containers do not have, such as `NET_RAW`. They run as root, which needs `DAC_OVERRIDE` where a volume has another owner."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "start_timeout" {
  description = "Seconds that ECS waits for `tls-init` to succeed, with `tls`, before it stops the task."
  type        = number
  default     = null
}

variable "stop_timeout" {
  description = "Seconds between the server's TERM and KILL; 30 when null."
  type        = number
  default     = null
}

variable "restart_policy" {
  description = "Whether ECS restarts the server in its task, with its data. Null: the task ends with it, and the service starts another one without data."
  type = object({
    enabled                = optional(bool, true)
    ignored_exit_codes     = optional(list(number))
    restart_attempt_period = optional(number)
  })
  default = null
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
    condition     = length(setintersection([for c in var.extra_container_definitions : try(c.name, "")], ["consul-server", "tls-init"])) == 0
    error_message = "extra_container_definitions has a container with the name consul-server or tls-init: rename it."
  }
}

variable "environment" {
  description = "More environment variables of the server, by name."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "secrets" {
  description = "More secrets of the server: ARNs by the name of the environment variable."
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

variable "container_definitions" {
  description = "All containers of a task, as in the ECS API."
  type        = any
  nullable    = false

  validation {
    condition     = can([for c in var.container_definitions : keys(c)])
    error_message = "container_definitions must be a list of objects."
  }
}

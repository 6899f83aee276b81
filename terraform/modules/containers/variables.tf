variable "container_definitions" {
  description = "All containers of a task, as in the ECS API."
  type        = any
}

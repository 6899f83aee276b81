output "task_definition_arn" {
  description = "ARN of the task definition."
  value       = module.task.task_definition.arn
}

output "task_role_id" {
  description = "Name of the task role."
  value       = module.task.task_role.id
}

output "task_role_arn" {
  description = "ARN of the task role."
  value       = module.task.task_role.arn
}

output "execution_role_id" {
  description = "Name of the execution role."
  value       = module.task.execution_role.id
}

output "execution_role_arn" {
  description = "ARN of the execution role."
  value       = module.task.execution_role.arn
}

output "task_tags" {
  description = "Tags of the task definition, with those of the provider."
  value       = module.task.task_definition.tags_all
}

output "container_definitions" {
  description = "All containers of the task, as in the ECS API."
  value       = module.render.container_definitions
}

output "task_definition_arn" {
  description = "ARN of the task definition."
  value       = aws_ecs_task_definition.this.arn
}

output "task_role_id" {
  description = "Name of the task role."
  value       = module.roles.task_role.id
}

output "task_role_arn" {
  description = "ARN of the task role."
  value       = module.roles.task_role.arn
}

output "execution_role_id" {
  description = "Name of the execution role."
  value       = module.roles.execution_role.id
}

output "execution_role_arn" {
  description = "ARN of the execution role."
  value       = module.roles.execution_role.arn
}

output "task_tags" {
  description = "Tags of the task definition, with those of the provider."
  value       = aws_ecs_task_definition.this.tags_all
}

output "container_definitions" {
  description = "All containers of the task, as the ECS API has them."
  value       = module.render.container_definitions
}

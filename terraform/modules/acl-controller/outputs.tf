output "ecs_service_name" {
  description = "Name of the controller's ECS service."
  value       = module.controller.ecs_service_name
}

output "task_definition_arn" {
  description = "ARN of the task definition."
  value       = module.controller.task_definition_arn
}

output "task_role_arn" {
  description = "ARN of the task role."
  value       = module.controller.task_role_arn
}

output "execution_role_arn" {
  description = "ARN of the execution role."
  value       = module.controller.execution_role_arn
}

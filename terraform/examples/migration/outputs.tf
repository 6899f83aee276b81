output "task_definition_arns" {
  description = "Task definitions of both generations."
  value       = { agent = module.agent.task_definition_arn, agentless = module.agentless.task_definition_arn }
}

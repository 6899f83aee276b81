output "task_definition" {
  description = "The task definition."
  value       = aws_ecs_task_definition.this
  # A task that starts without its policies fails.
  depends_on = [
    aws_iam_role_policy.task, aws_iam_role_policy.execution,
    aws_iam_role_policy_attachment.task, aws_iam_role_policy_attachment.execution,
  ]
}

output "task_role" {
  description = "Name and ARN of the task role."
  value       = local.task_role
}

output "execution_role" {
  description = "Name and ARN of the execution role."
  value       = local.execution_role
}

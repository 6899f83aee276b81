output "trust" {
  description = "Trust policy of the task role and of the execution role."
  # Only ECS gets credentials of the roles: another principal that could assume the task
  # role could log in to Consul as the service.
  value = jsonencode({
    Version = "2012-10-17"
    Statement = [merge(
      {
        Effect    = "Allow"
        Action    = "sts:AssumeRole"
        Principal = { Service = "ecs-tasks.amazonaws.com" }
      },
      # ECS assumes roles for all accounts: the conditions are met when it acts for this one.
      # AWS supports no ARN of a single cluster here.
      var.restrict_role_trust ? {
        Condition = {
          StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.this.account_id }
          ArnLike      = { "aws:SourceArn" = "arn:${data.aws_partition.this.partition}:ecs:${local.owner}:*" }
        }
      } : {},
    )]
  })
}

output "execution" {
  description = "Policy of the execution role: the log groups, secrets and parameters that the containers name, and what the variables add."
  value       = jsonencode({ Version = "2012-10-17", Statement = local.statements })
}

output "execute_command" {
  description = "Statement by which `aws ecs execute-command` can open channels to the task."
  value = {
    Effect = "Allow"
    Action = [
      "ssmmessages:CreateControlChannel",
      "ssmmessages:CreateDataChannel",
      "ssmmessages:OpenControlChannel",
      "ssmmessages:OpenDataChannel",
    ]
    Resource = ["*"]
  }
}

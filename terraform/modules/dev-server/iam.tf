data "aws_partition" "current" {}

data "aws_caller_identity" "current" {}

locals {
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
    }]
  })


  all_secrets = concat(local.server_secrets, local.tls_secrets)

  # An ARN in valueFrom may end in :json-key:version-stage:version-id.
  secret_arns    = distinct([for s in local.all_secrets : s.valueFrom if !strcontains(s.valueFrom, ":ssm:")])
  secret_ids     = [for arn in local.secret_arns : join(":", slice(split(":", arn), 0, min(7, length(split(":", arn)))))]
  parameter_arns = distinct([for s in local.all_secrets : s.valueFrom if strcontains(s.valueFrom, ":ssm:")])

  awslogs   = try(local.log.logDriver, "") == "awslogs" ? local.log.options : {}
  log_group = lookup(local.awslogs, "awslogs-group", "")
  log_arn = join(":", [
    "arn", data.aws_partition.current.partition, "logs", lookup(local.awslogs, "awslogs-region", data.aws_region.current.id),
    data.aws_caller_identity.current.account_id, "log-group", local.log_group,
  ])

  execution_statements = concat(
    [for ids in [local.secret_ids] : { Effect = "Allow", Action = ["secretsmanager:GetSecretValue"], Resource = ids } if length(ids) > 0],
    [for arns in [local.parameter_arns] : { Effect = "Allow", Action = ["ssm:GetParameters"], Resource = arns } if length(arns) > 0],
    [for group in compact([local.log_group]) : {
      Effect = "Allow"
      Action = concat(
        ["logs:CreateLogStream", "logs:PutLogEvents"],
        lookup(local.awslogs, "awslogs-create-group", "false") == "true" ? ["logs:CreateLogGroup"] : [],
      )
      Resource = [local.log_arn, "${local.log_arn}:*"]
    }],
    [for arns in [var.ecr_repository_arns] : {
      Effect   = "Allow"
      Action   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
      Resource = arns
    } if length(arns) > 0],
    [for arns in [var.ecr_repository_arns] : { Effect = "Allow", Action = ["ecr:GetAuthorizationToken"], Resource = ["*"] } if length(arns) > 0],
    [for arns in [concat(var.kms_key_arns, var.kms_key_arn[*])] : { Effect = "Allow", Action = ["kms:Decrypt"], Resource = arns } if length(arns) > 0],
  )
}

# Prefixes, because roles are global in an account and `name` is a short one.
resource "aws_iam_role" "execution" {
  name_prefix          = "${substr(var.name, 0, 20)}-consul-exec-"
  path                 = "/ecs/"
  assume_role_policy   = local.assume_role_policy
  permissions_boundary = var.permissions_boundary
  tags                 = local.tags
}

resource "aws_iam_role_policy" "execution" {
  count  = length(local.all_secrets) > 0 || local.log_group != "" || length(var.ecr_repository_arns) > 0 ? 1 : 0
  name   = "execution"
  role   = aws_iam_role.execution.id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.execution_statements })
}

# A server asks AWS for nothing; only ECS Exec needs a task role.
resource "aws_iam_role" "task" {
  count                = var.enable_execute_command ? 1 : 0
  name_prefix          = "${substr(var.name, 0, 20)}-consul-task-"
  assume_role_policy   = local.assume_role_policy
  permissions_boundary = var.permissions_boundary
  tags                 = local.tags
}

resource "aws_iam_role_policy" "task" {
  count = var.enable_execute_command ? 1 : 0
  name  = "task"
  role  = aws_iam_role.task[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect = "Allow"
      Action = [
        "ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel",
      ]
      Resource = ["*"]
    }]
  })
}

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

  task_statements = concat(
    [{
      Effect    = "Allow"
      Action    = ["ecs:ListTasks", "ecs:DescribeTasks"]
      Resource  = ["*"]
      Condition = { ArnEquals = { "ecs:cluster" = [var.ecs_cluster_arn] } }
    }],
    [for on in [var.enable_execute_command] : {
      Effect = "Allow"
      Action = [
        "ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel",
      ]
      Resource = ["*"]
    } if on],
  )

  # An ARN in valueFrom may end in :json-key:version-stage:version-id.
  secret_arns    = distinct([for s in local.secrets : s.valueFrom if !strcontains(s.valueFrom, ":ssm:")])
  secret_ids     = [for arn in local.secret_arns : join(":", slice(split(":", arn), 0, min(7, length(split(":", arn)))))]
  parameter_arns = distinct([for s in local.secrets : s.valueFrom if strcontains(s.valueFrom, ":ssm:")])

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
    [for arns in [var.kms_key_arns] : { Effect = "Allow", Action = ["kms:Decrypt"], Resource = arns } if length(arns) > 0],
  )
}

# The roles are not below iam_role_path: the controller must not log in as a service.
resource "aws_iam_role" "task" {
  name                 = "${local.family}-task"
  assume_role_policy   = local.assume_role_policy
  permissions_boundary = var.permissions_boundary
  tags                 = local.tags
}

resource "aws_iam_role_policy" "task" {
  name   = "${local.family}-task"
  role   = aws_iam_role.task.id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.task_statements })
}

resource "aws_iam_role" "execution" {
  name                 = "${local.family}-execution"
  path                 = "/ecs/"
  assume_role_policy   = local.assume_role_policy
  permissions_boundary = var.permissions_boundary
  tags                 = local.tags
}

resource "aws_iam_role_policy" "execution" {
  name   = "${local.family}-execution"
  role   = aws_iam_role.execution.id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.execution_statements })
}

resource "aws_iam_role_policy_attachment" "execution" {
  count      = length(var.additional_execution_role_policies)
  role       = aws_iam_role.execution.id
  policy_arn = var.additional_execution_role_policies[count.index]
}

data "aws_partition" "this" {}

data "aws_caller_identity" "this" {}

locals {
  # Only ECS gets credentials of the roles: who else could assume the task role could log
  # in to Consul as the service.
  trust = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
    }]
  })

  task_statements = [for s in [
    {
      wanted = var.acls
      statement = {
        Effect   = "Allow"
        Action   = ["iam:GetRole"]
        Resource = [one(aws_iam_role.task[*].arn)]
      }
    },
    {
      wanted = var.enable_execute_command
      statement = {
        Effect = "Allow"
        Action = [
          "ssmmessages:CreateControlChannel",
          "ssmmessages:CreateDataChannel",
          "ssmmessages:OpenControlChannel",
          "ssmmessages:OpenDataChannel",
        ]
        Resource = ["*"]
      }
    },
  ] : s.statement if s.wanted]

  logs = distinct([for c in var.container_definitions : {
    group  = c.logConfiguration.options["awslogs-group"]
    region = try(c.logConfiguration.options["awslogs-region"], "*")
    create = try(tostring(c.logConfiguration.options["awslogs-create-group"]) == "true", false)
  } if try(c.logConfiguration.logDriver == "awslogs" && c.logConfiguration.options["awslogs-group"] != "", false)])
  log_arn = "arn:${data.aws_partition.this.partition}:logs:%s:${data.aws_caller_identity.this.account_id}:log-group:%s"

  # A secret's ARN without the key and version that valueFrom can have behind it.
  secrets = distinct([for s in var.secrets : join(":", slice(split(":", s), 0, 7)) if strcontains(s, ":secretsmanager:")])
  # A parameter of the task's own region may be given by its name.
  parameters = distinct([
    for s in var.secrets : startswith(s, "arn:") ? s : "arn:${data.aws_partition.this.partition}:ssm:*:${data.aws_caller_identity.this.account_id}:parameter/${trimprefix(s, "/")}"
    if !strcontains(s, ":secretsmanager:")
  ])

  task_role = {
    id  = var.create_task_role ? one(aws_iam_role.task[*].id) : var.task_role.id
    arn = var.create_task_role ? one(aws_iam_role.task[*].arn) : var.task_role.arn
  }
  execution_role = {
    id  = var.create_execution_role ? one(aws_iam_role.execution[*].id) : var.execution_role.id
    arn = var.create_execution_role ? one(aws_iam_role.execution[*].arn) : var.execution_role.arn
  }

  execution_statements = [for s in [
    { actions = ["logs:CreateLogStream", "logs:PutLogEvents"], resources = distinct([for l in local.logs : format("${local.log_arn}:*", l.region, l.group)]) },
    { actions = ["logs:CreateLogGroup"], resources = distinct([for l in local.logs : format(local.log_arn, l.region, l.group) if l.create]) },
    { actions = ["secretsmanager:GetSecretValue"], resources = local.secrets },
    { actions = ["ssm:GetParameters"], resources = local.parameters },
    { actions = ["kms:Decrypt"], resources = var.kms_key_arns },
    { actions = ["ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage"], resources = var.ecr_repository_arns },
    # Gives access to no repository by itself. It is always there, since a policy needs a statement.
    { actions = ["ecr:GetAuthorizationToken"], resources = ["*"] },
  ] : { Effect = "Allow", Action = s.actions, Resource = s.resources } if length(s.resources) > 0]
}

resource "aws_iam_role" "task" {
  count = var.create_task_role ? 1 : 0

  name                 = "${var.name}-task"
  path                 = var.path
  assume_role_policy   = local.trust
  permissions_boundary = var.permissions_boundary

  # Consul's auth method reads these tags, so the user's cannot replace them.
  tags = merge(
    var.role_tags,
    {
      "consul.hashicorp.com.service-name" = var.identity.service_name
      "consul.hashicorp.com.namespace"    = var.identity.namespace
    },
    var.identity.gateway_kind == "" ? {} : { "consul.hashicorp.com.gateway-kind" = var.identity.gateway_kind },
  )
}

resource "aws_iam_role_policy" "task" {
  count = var.create_task_role && (var.acls || var.enable_execute_command) ? 1 : 0

  name   = "${var.name}-task"
  role   = aws_iam_role.task[0].id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.task_statements })
}

resource "aws_iam_role_policy_attachment" "task" {
  count = var.create_task_role ? length(var.additional_task_role_policies) : 0

  role       = aws_iam_role.task[0].id
  policy_arn = var.additional_task_role_policies[count.index]
}

resource "aws_iam_role" "execution" {
  count = var.create_execution_role ? 1 : 0

  name                 = "${var.name}-execution"
  path                 = var.path
  assume_role_policy   = local.trust
  permissions_boundary = var.permissions_boundary
  tags                 = var.role_tags
}

resource "aws_iam_role_policy" "execution" {
  count = var.create_execution_role ? 1 : 0

  name   = "${var.name}-execution"
  role   = aws_iam_role.execution[0].id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.execution_statements })
}

resource "aws_iam_role_policy_attachment" "execution" {
  count = var.create_execution_role ? length(var.additional_execution_role_policies) : 0

  role       = aws_iam_role.execution[0].id
  policy_arn = var.additional_execution_role_policies[count.index]
}

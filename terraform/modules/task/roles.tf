module "policies" {
  source = "../policies"

  container_definitions = var.container_definitions
  # ECS mounts file shares of FSx with the execution role.
  secrets             = [for v in var.volume_configurations : v.fsx_windows_file_server_volume_configuration.authorization_config.credentials_parameter if try(v.fsx_windows_file_server_volume_configuration, null) != null]
  ecr_repository_arns = var.ecr_repository_arns
  kms_key_arns        = var.kms_key_arns
  restrict_role_trust = var.restrict_role_trust
}

locals {
  path = "${trimsuffix(var.path, "/")}/"

  task_statements = [for s in [
    { wanted = var.acls, statement = { Effect = "Allow", Action = ["iam:GetRole"], Resource = [one(aws_iam_role.task[*].arn)] } },
    { wanted = var.enable_execute_command, statement = module.policies.execute_command },
  ] : s.statement if s.wanted]

  task_role = {
    id  = var.create_task_role ? one(aws_iam_role.task[*].id) : var.task_role.id
    arn = var.create_task_role ? one(aws_iam_role.task[*].arn) : var.task_role.arn
  }
  execution_role = {
    id  = var.create_execution_role ? one(aws_iam_role.execution[*].id) : var.execution_role.id
    arn = var.create_execution_role ? one(aws_iam_role.execution[*].arn) : var.execution_role.arn
  }
}

resource "aws_iam_role" "task" {
  count = var.create_task_role ? 1 : 0

  name                 = "${var.name}-task"
  path                 = local.path
  assume_role_policy   = module.policies.trust
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
  path                 = local.path
  assume_role_policy   = module.policies.trust
  permissions_boundary = var.permissions_boundary
  tags                 = var.role_tags
}

resource "aws_iam_role_policy" "execution" {
  count = var.create_execution_role ? 1 : 0

  name   = "${var.name}-execution"
  role   = aws_iam_role.execution[0].id
  policy = module.policies.execution
}

resource "aws_iam_role_policy_attachment" "execution" {
  count = var.create_execution_role ? length(var.additional_execution_role_policies) : 0

  role       = aws_iam_role.execution[0].id
  policy_arn = var.additional_execution_role_policies[count.index]
}

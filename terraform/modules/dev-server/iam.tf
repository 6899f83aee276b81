module "policies" {
  source = "../policies"

  container_definitions = module.containers.container_definitions
  ecr_repository_arns   = var.ecr_repository_arns
  kms_key_arns          = concat(var.kms_key_arns, var.kms_key_arn[*])
  restrict_role_trust   = var.restrict_role_trust
}

# Prefixes, because roles are global in an account and `name` is a short one.
resource "aws_iam_role" "execution" {
  name_prefix          = "${substr(var.name, 0, 20)}-consul-exec-"
  path                 = "/ecs/"
  assume_role_policy   = module.policies.trust
  permissions_boundary = var.permissions_boundary
  tags                 = local.tags
}

resource "aws_iam_role_policy" "execution" {
  name   = "execution"
  role   = aws_iam_role.execution.id
  policy = module.policies.execution
}

resource "aws_iam_role_policy_attachment" "execution" {
  count      = length(var.additional_execution_role_policies)
  role       = aws_iam_role.execution.id
  policy_arn = var.additional_execution_role_policies[count.index]
}

# A server asks AWS for nothing; only ECS Exec needs a task role.
resource "aws_iam_role" "task" {
  count                = var.enable_execute_command ? 1 : 0
  name_prefix          = "${substr(var.name, 0, 20)}-consul-task-"
  assume_role_policy   = module.policies.trust
  permissions_boundary = var.permissions_boundary
  tags                 = local.tags
}

resource "aws_iam_role_policy" "task" {
  count  = var.enable_execute_command ? 1 : 0
  name   = "task"
  role   = aws_iam_role.task[0].id
  policy = jsonencode({ Version = "2012-10-17", Statement = [module.policies.execute_command] })
}

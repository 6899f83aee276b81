module "policies" {
  source = "../policies"

  container_definitions = module.containers.container_definitions
  ecr_repository_arns   = var.ecr_repository_arns
  kms_key_arns          = var.kms_key_arns
  restrict_role_trust   = var.restrict_role_trust
}

locals {
  task_statements = concat(
    [{
      Effect    = "Allow"
      Action    = ["ecs:ListTasks", "ecs:DescribeTasks"]
      Resource  = ["*"]
      Condition = { ArnEquals = { "ecs:cluster" = [var.ecs_cluster_arn] } }
    }],
    [for on in [var.enable_execute_command] : module.policies.execute_command if on],
  )
}

# The roles are not below iam_role_path: the controller must not log in as a service.
resource "aws_iam_role" "task" {
  name                 = "${local.family}-task"
  assume_role_policy   = module.policies.trust
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
  assume_role_policy   = module.policies.trust
  permissions_boundary = var.permissions_boundary
  tags                 = local.tags
}

resource "aws_iam_role_policy" "execution" {
  name   = "${local.family}-execution"
  role   = aws_iam_role.execution.id
  policy = module.policies.execution
}

resource "aws_iam_role_policy_attachment" "execution" {
  count      = length(var.additional_execution_role_policies)
  role       = aws_iam_role.execution.id
  policy_arn = var.additional_execution_role_policies[count.index]
}

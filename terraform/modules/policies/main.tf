# Policies that follow from a task's containers, for the roles of every module.
data "aws_partition" "this" {}

data "aws_caller_identity" "this" {}

data "aws_region" "this" {}

locals {
  # The part of an ARN between service and resource.
  owner = "${data.aws_region.this.id}:${data.aws_caller_identity.this.account_id}"

  logs = distinct([for c in var.container_definitions : {
    group  = c.logConfiguration.options["awslogs-group"]
    region = try(coalesce(c.logConfiguration.options["awslogs-region"]), data.aws_region.this.id)
    create = try(tostring(c.logConfiguration.options["awslogs-create-group"]) == "true", false)
  } if try(c.logConfiguration.logDriver == "awslogs" && c.logConfiguration.options["awslogs-group"] != "", false)])
  log_arn = "arn:${data.aws_partition.this.partition}:logs:%s:${data.aws_caller_identity.this.account_id}:log-group:%s"

  values_from = distinct(concat(flatten([for c in var.container_definitions : [
    try([for s in c.secrets : s.valueFrom], []),
    try([for s in c.logConfiguration.secretOptions : s.valueFrom], []),
  ]]), var.secrets))
  # A registry's secret of the task's own region may be given by its name, to which Secrets
  # Manager adds six characters.
  registries = distinct([for c in var.container_definitions : c.repositoryCredentials.credentialsParameter if try(c.repositoryCredentials.credentialsParameter != null, false)])

  # A secret's ARN without the key and version that valueFrom can have behind it.
  secrets = distinct(concat(
    [for s in local.values_from : join(":", slice(split(":", s), 0, min(7, length(split(":", s))))) if strcontains(s, ":secretsmanager:")],
    [for s in local.registries : startswith(s, "arn:") ? s : "arn:${data.aws_partition.this.partition}:secretsmanager:${local.owner}:secret:${s}-??????"],
  ))
  # A parameter of the task's own region may be given by its name.
  parameters = distinct([
    for s in local.values_from : startswith(s, "arn:") ? s : "arn:${data.aws_partition.this.partition}:ssm:${local.owner}:parameter/${trimprefix(s, "/")}"
    if !strcontains(s, ":secretsmanager:")
  ])

  # ARNs of objects in S3: files with environment variables, and configurations of log routers.
  files = distinct(concat(
    flatten([for c in var.container_definitions : try([for f in c.environmentFiles : f.value], [])]),
    [for c in var.container_definitions : c.firelensConfiguration.options["config-file-value"] if try(c.firelensConfiguration.options["config-file-type"] == "s3" && c.firelensConfiguration.options["config-file-value"] != null, false)],
  ))

  statements = [for s in [
    { actions = ["logs:CreateLogStream", "logs:PutLogEvents"], resources = distinct([for l in local.logs : format("${local.log_arn}:*", l.region, l.group)]) },
    # IAM evaluates CreateLogGroup for the ARN of the group, or for that ARN followed by :log-stream:, so both forms are listed.
    { actions = ["logs:CreateLogGroup"], resources = distinct(flatten([for l in local.logs : [for suffix in ["", ":*"] : format("${local.log_arn}${suffix}", l.region, l.group)] if l.create])) },
    { actions = ["secretsmanager:GetSecretValue"], resources = local.secrets },
    { actions = ["ssm:GetParameters"], resources = local.parameters },
    { actions = ["s3:GetObject"], resources = local.files },
    { actions = ["s3:GetBucketLocation"], resources = distinct([for f in local.files : split("/", f)[0]]) },
    { actions = ["kms:Decrypt"], resources = var.kms_key_arns },
    { actions = ["ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage"], resources = var.ecr_repository_arns },
    # Gives access to no repository by itself. It is always there, since a policy needs a statement.
    { actions = ["ecr:GetAuthorizationToken"], resources = ["*"] },
  ] : { Effect = "Allow", Action = s.actions, Resource = s.resources } if length(s.resources) > 0]
}

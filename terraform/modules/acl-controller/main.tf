module "controller" {
  source = "../controller"

  generation = "agent"

  name_prefix                        = var.name_prefix
  consul_ecs_image                   = var.consul_ecs_image
  consul_bootstrap_token_secret_arn  = var.consul_bootstrap_token_secret_arn
  consul_server_http_addr            = var.consul_server_http_addr
  ecs_cluster_arn                    = var.ecs_cluster_arn
  subnets                            = var.subnets
  consul_server_ca_cert_arn          = var.consul_server_ca_cert_arn
  consul_partitions_enabled          = var.consul_partitions_enabled
  consul_partition                   = var.consul_partition
  iam_role_path                      = var.iam_role_path
  region                             = var.region
  security_groups                    = var.security_groups
  assign_public_ip                   = var.assign_public_ip
  launch_type                        = var.launch_type
  requires_compatibilities           = var.requires_compatibilities
  log_configuration                  = var.log_configuration
  additional_execution_role_policies = var.additional_execution_role_policies
  ecr_repository_arns                = var.ecr_repository_arns
  kms_key_arns                       = var.kms_key_arns
  permissions_boundary               = var.permissions_boundary
  tags                               = var.tags
}

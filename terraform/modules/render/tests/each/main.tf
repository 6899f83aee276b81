# Renders several tasks with one apply.
variable "tasks" {
  type = any
}

module "render" {
  source   = "../.."
  for_each = var.tasks

  family                   = each.value.family
  requires_compatibilities = each.value.requires_compatibilities
  container_definitions    = each.value.container_definitions
  configuration            = each.value.configuration
  images                   = each.value.images
  client                   = each.value.client
  secrets                  = each.value.secrets
  log_configuration        = each.value.log_configuration
  envoy_concurrency        = each.value.envoy_concurrency
  ignore_containers        = each.value.ignore_containers
  memory                   = each.value.memory
  sidecars                 = each.value.sidecars
  tags                     = each.value.tags
  runtime_platform         = each.value.runtime_platform
  volumes                  = each.value.volumes
}

output "tasks" {
  value = module.render
}

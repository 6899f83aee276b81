locals {
  tags = merge(
    { "consul.hashicorp.com/mesh" = "true" },
    var.module == null ? {} : {
      for k, v in {
        "service-name"   = local.identity.name
        "module"         = var.module.name
        "module-version" = var.module.version
        "namespace"      = try(local.gateway ? var.configuration.gateway.namespace : var.configuration.service.namespace, "")
        "partition"      = try(local.gateway ? var.configuration.gateway.partition : var.configuration.service.partition, "")
      } : "consul.hashicorp.com/${k}" => v if v != "" && v != null
    },
  )
  architecture = try(coalesce(var.runtime_platform.cpu_architecture), "")
}

output "container_definitions" {
  description = "All containers of the task, as in the ECS API."
  value       = module.containers.container_definitions

  precondition {
    condition = length(local.refusals) == 0
    # It has names and ports of containers, and nothing of what makes a definition sensitive.
    error_message = nonsensitive(join("\n", local.refusals))
  }
  precondition {
    condition     = local.gateway || length(local.primary) > 0
    error_message = "No container of container_definitions is an essential application: make the application essential."
  }
  precondition {
    condition     = alltrue([for c in var.container_definitions : !can(coalesce(c.dockerLabels["consul.hashicorp.com/kind"])) && !can(coalesce(c.dockerLabels["consul.hashicorp.com/native"]))])
    error_message = "A container of container_definitions has the label consul.hashicorp.com/kind or consul.hashicorp.com/native: only consul-ecs admit supports custom proxies and applications that are in the mesh without a proxy."
  }
}

output "volumes" {
  description = "Names of all volumes of the task. That of the mesh needs no further settings."
  value       = distinct(concat(var.volumes, [local.volume]))
}

output "tags" {
  description = "Tags of the task definition."
  value       = merge(var.tags, { for k, v in local.tags : k => v if k != "consul.hashicorp.com/mesh" || !contains(keys(var.tags), k) })
}

output "placement_constraints" {
  description = "Placement constraints of the task definition."
  value = concat(var.placement_constraints, [
    for c in [{ type = "memberOf", expression = "attribute:ecs.cpu-architecture == ${lower(local.architecture)}" }] : c
    if !local.maybe_fargate && contains(["ARM64", "X86_64"], local.architecture) &&
    !anytrue([for c in var.placement_constraints : strcontains(coalesce(c.expression, "-"), "attribute:ecs.cpu-architecture")])
  ])
}

output "configuration" {
  description = "Configuration of the task's containers, the content of `CONSUL_ECS_CONFIG_JSON`."
  value       = local.configuration
}

output "name" {
  description = "Name of the service or gateway."
  value       = local.identity.name
}

output "proxy_container_name" {
  description = "Name of the proxy's container."
  value       = local.names.proxy
}

output "unwrapped" {
  description = "Applications that `app-entrypoint` does not start, and whose shutdown it does not delay: their program is not known, must be process 1, or they have the docker label `consul.hashicorp.com/wrap` `false`."
  value       = local.unwrapped
}

output "warnings" {
  description = "What `consul-ecs admit` warns about, too: why an application is not wrapped, or that its image's ENTRYPOINT is not run any more, with the remedy."
  value       = local.warnings
}

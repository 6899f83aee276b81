# The configuration of the task's containers, and what is decided by it.
locals {
  # Names of the containers of the mesh.
  names = {
    install     = "consul-ecs-install"
    client      = "consul-client"
    mesh_init   = "consul-ecs-mesh-init"
    proxy       = local.direct ? "sidecar-proxy" : "consul-dataplane"
    health_sync = "consul-ecs-health-sync"
  }
  proxies  = ["sidecar-proxy", "consul-dataplane"]
  reserved = ["consul-ecs-install", "consul-client", "consul-ecs-mesh-init", "sidecar-proxy", "consul-dataplane", "consul-ecs-health-sync"]

  agent   = try(var.configuration.consulServers, null) == null
  gateway = try(var.configuration.gateway, null) != null
  fargate = contains(var.requires_compatibilities, "FARGATE")
  direct  = local.agent || try(local.gateway ? var.configuration.gateway.proxy.mode : var.configuration.proxy.mode, "dataplane") == "direct"

  bootstrap_dir = coalesce(try(var.configuration.bootstrapDir, null), "/consul")
  program       = "${local.bootstrap_dir}/consul-ecs"
  # The container whose end all others wait for: the one that copies the program.
  gate = local.agent ? local.names.install : local.names.mesh_init

  health_check_port = coalesce(try(local.gateway ? var.configuration.gateway.healthCheckPort : var.configuration.proxy.healthCheckPort, null), 0)
  public_port       = coalesce(try(var.configuration.proxy.publicListenerPort, null), 0)
  lan_port          = coalesce(try(var.configuration.gateway.lanAddress.port, null), 0)
  # Where connections are accepted when the proxy is ready; 0 in the configuration means the default.
  ready_port = (
    !local.agent ? (local.health_check_port == 0 ? 22000 : local.health_check_port) :
    local.gateway ? (local.lan_port == 0 ? 8443 : local.lan_port) :
    local.public_port == 0 ? 20000 : local.public_port
  )

  identity = {
    name = try(coalesce(local.gateway ? var.configuration.gateway.name : var.configuration.service.name, null), lower(var.family))
  }

  # What Consul calls the proxy's service, as a label for operators.
  kind = "${local.gateway ? "connect-${trimsuffix(try(var.configuration.gateway.kind, ""), "-gateway")}" : "connect-proxy"}:${local.identity.name}"

  # Essential applications with a health check; essential is true by default, as ECS has it.
  health_sync_containers = sort(distinct([for c in local.applications : c.name if c.essential && c.health_checked]))
  primary                = [for c in local.applications : c if c.essential]
  port                   = try([for p in local.primary[0].container.portMappings : p.containerPort if try(p.containerPort, null) != null && try(p.protocol, null) != "udp"][0], 0)

  derived = {
    bootstrapDir = local.bootstrap_dir
    service = local.gateway ? null : merge(
      try({ for k, v in var.configuration.service : k => v if v != null }, {}),
      local.identity,
      { port = coalesce(try(var.configuration.service.port, null), local.port) },
    )
    gateway = local.gateway ? merge({ for k, v in var.configuration.gateway : k => v if v != null }, local.identity) : null
    # Values of different types cannot be the results of one conditional, so the first that is not null is taken.
    healthSyncContainers = try([for v in [
      try(var.configuration.healthSyncContainers, null),
      local.gateway || try(var.configuration.service.checks, null) != null ? null : local.health_sync_containers,
    ] : v if v != null][0], null)
    # An absent transparentProxy means an enabled one, which Fargate cannot do.
    transparentProxy = try([for v in [
      try(var.configuration.transparentProxy, null),
      !local.agent && local.fargate ? { enabled = false } : null,
    ] : v if v != null][0], null)
  }
  # Without nulls in the first two levels.
  configuration = {
    for k, v in merge(var.configuration, local.derived) :
    k => try({ for name in keys(v) : name => v[name] if v[name] != null }, v) if v != null
  }
  # The containers refuse a null, so here are none at any depth. HCL has no recursion, but a member
  # of an object is easily found in JSON. An object of nulls alone is null, such as meshGateway = { mode = null }.
  # Then members go that have another one before them, and last the first ones. What follows a text is
  # no name: no name of a member begins as it does.
  null_member        = "\"(?:[^\"\\\\,:\\]}]|\\\\.)(?:[^\"\\\\]|\\\\.)*\":null"
  null_objects       = replace(jsonencode(local.configuration), "/{${local.null_member}(?:,${local.null_member})*}/", "null")
  configuration_json = replace(replace(local.null_objects, "/,${local.null_member}/", ""), "/{${local.null_member},?/", "{")

  login           = try(coalesce(var.configuration.consulLogin.enabled, false), false)
  named_upstreams = try(coalesce(local.configuration.proxy.namedUpstreams, false), false)
  transparent     = !local.agent && !local.gateway && try(coalesce(local.configuration.transparentProxy.enabled, true), true)
}

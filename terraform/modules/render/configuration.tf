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

  # By lookup, since try is unknown while one of its members is, such as hosts that the same apply makes.
  agent   = lookup(var.configuration, "consulServers", null) == null
  gateway = try(var.configuration.gateway, null) != null
  fargate = contains(var.requires_compatibilities, "FARGATE")
  # Without launch types Fargate is possible.
  maybe_fargate = local.fargate || length(var.requires_compatibilities) == 0
  direct        = local.agent || try(local.gateway ? var.configuration.gateway.proxy.mode : var.configuration.proxy.mode, "dataplane") == "direct"

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
  primary                = [for c in local.applications : c if c.essential]
  serving                = [for c in local.primary : c if !contains(local.collectors, c.name) || length(local.collectors) == length(local.primary)]
  collecting             = [for c in local.primary : c if contains(local.collectors, c.name) && length(local.collectors) < length(local.primary)]
  health_sync_containers = sort(distinct([for c in local.serving : c.name if c.health_checked]))
  # TCP ports of what serves: one that names its protocol is taken before others.
  candidates = flatten([for c in local.serving : [
    for p in try([for p in c.container.portMappings : p], []) : { port = p.containerPort, declared = try(p.appProtocol, null) != null }
    if try(p.containerPort, null) != null && try(p.protocol, null) != "udp"
  ]])
  port         = try([for c in local.candidates : c.port if c.declared][0], local.candidates[0].port, 0)
  service_port = coalesce(try(var.configuration.service.port, null), local.port)

  # The transparent proxy goes past the other TCP ports, and is on without a request on EC2 alone.
  ec2_only = join(",", var.requires_compatibilities) == "EC2"
  ranges = flatten([for c in local.described : [
    for p in try([for p in c.container.portMappings : p], []) : {
      from = try(tonumber(coalesce(p.containerPort)), tonumber(split("-", p.containerPortRange)[0]), 0)
      to   = try(tonumber(coalesce(p.containerPort)), tonumber(split("-", p.containerPortRange)[1]), 0)
    } if try(p.protocol, null) != "udp"
  ]])
  plain_ports = [for port in sort(distinct(flatten([
    for r in local.ranges : [for port in range(r.from, r.to + 1) : format("%05d", port)] if r.from > 0 && r.to >= r.from && r.to - r.from < 100
  ]))) : tonumber(port) if tonumber(port) != local.service_port]
  redirection = try({ for k, v in var.configuration.transparentProxy : k => v if v != null }, {})
  redirected  = !local.agent && !local.gateway && try(local.redirection.enabled, local.ec2_only || (local.fargate && length(local.redirection) > 0))

  derived = {
    bootstrapDir = local.bootstrap_dir
    service = local.gateway ? null : merge(
      try({ for k, v in var.configuration.service : k => v if v != null }, {}),
      local.identity,
      { port = local.service_port },
    )
    gateway = local.gateway ? merge({ for k, v in var.configuration.gateway : k => v if v != null }, local.identity) : null
    # Values of different types cannot be the results of one conditional, so the first that is not null is taken.
    healthSyncContainers = try([for v in [
      try(var.configuration.healthSyncContainers, null),
      local.gateway || try(var.configuration.service.checks, null) != null ? null : local.health_sync_containers,
    ] : v if v != null][0], null)
    # An absent transparentProxy means an enabled one, which Fargate cannot do.
    transparentProxy = try([for v in concat(
      [for given in [try(var.configuration.transparentProxy, null)] : given if local.agent],
      [for made in [merge(
        local.ec2_only || (local.fargate && length(local.redirection) > 0) ? null : { enabled = false },
        local.redirected && length(local.plain_ports) > 0 ? { excludeInboundPorts = local.plain_ports } : null,
        local.redirection,
      )] : made if !local.agent && length(made) > 0],
    ) : v if v != null][0], null)
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

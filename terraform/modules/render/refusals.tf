# What `consul-ecs admit` refuses, too: such a task would not start, or not be in the mesh.
locals {
  service_name = "^[a-z0-9]([a-z0-9_-]{0,254}[a-z0-9])?$"

  # Ports of the containers of the mesh, at all addresses of the task.
  mesh_listeners = [for l in [
    { port = 19000, owner = "Envoy's admin interface", exists = true },
    { port = local.public_port == 0 ? 20000 : local.public_port, owner = "Envoy's public listener", exists = !local.gateway },
    { port = local.ready_port, owner = "Envoy's readiness", exists = !local.agent },
    { port = 15001, owner = "the transparent proxy", exists = local.transparent },
    { port = 8600, owner = "Consul DNS", exists = local.transparent && try(coalesce(local.configuration.transparentProxy.consulDNS.enabled), false) },
    { port = 8301, owner = "the Consul agent", exists = local.agent },
    { port = 8500, owner = "the Consul agent", exists = local.agent },
    { port = 8502, owner = "the Consul agent", exists = local.agent },
    { port = 8600, owner = "the Consul agent", exists = local.agent },
  ] : l if l.exists]
  upstreams = try([for u in local.configuration.proxy.upstreams : {
    name    = try(coalesce(u.destinationName), "")
    service = try(u.destinationType, null) != "prepared_query"
    port    = u.localBindPort
    at      = "${coalesce(try(u.localBindAddress, null), "127.0.0.1")}:${u.localBindPort}"
    to = join("/", concat(
      [try(coalesce(u.destinationType), local.agent ? "service" : "")],
      [for k in ["destinationName", "destinationNamespace", "destinationPartition", "destinationPeer", "datacenter"] : try(coalesce(u[k]), "")],
    ))
  }], [])
  # consul-wan-federation is the module's.
  meta    = try({ for k, v in(local.gateway ? local.configuration.gateway.meta : local.configuration.service.meta) : k => v if v != null && k != "consul-wan-federation" }, {})
  exposed = try([for p in local.configuration.proxy.expose.paths : { port = p.listenerPort, owner = "the exposed path ${p.path}" }], [])

  # Those of the applications, which may listen at all addresses, too.
  application_listeners = concat(
    [for port in [local.gateway ? local.lan_port : local.configuration.service.port] : { from = port, to = port, owner = local.gateway ? "the gateway" : "the service" }],
    flatten([for c in local.described : [
      for p in try([for p in c.container.portMappings : p], []) : {
        from  = try(tonumber(coalesce(p.containerPort)), tonumber(split("-", p.containerPortRange)[0]), 0)
        to    = try(tonumber(coalesce(p.containerPort)), tonumber(split("-", p.containerPortRange)[1]), 0)
        owner = "container ${c.name}"
      } if try(p.protocol, null) != "udp"
    ]]),
  )
  proxy_listeners = concat(local.exposed, [for u in local.upstreams : { port = u.port, owner = "the upstream ${u.name}" }])
  clashes = distinct(concat(
    [for pair in setproduct(local.proxy_listeners, local.mesh_listeners) : { port = pair[1].port, owner = pair[0].owner, other = pair[1].owner } if pair[0].port == pair[1].port],
    [for pair in setproduct(local.application_listeners, concat(local.mesh_listeners, local.proxy_listeners)) : { port = pair[1].port, owner = pair[0].owner, other = pair[1].owner }
    if pair[0].from <= pair[1].port && pair[1].port <= pair[0].to],
  ))

  # What each container mounts, and where.
  mounts = concat(
    [for c in local.described : { name = c.name, mounts = concat(
      try([for t in c.container.linuxParameters.tmpfs : { volume = "a tmpfs", at = abspath(t.containerPath) }], []),
      [for m in try([for m in c.container.mountPoints : m], []) : { volume = try(coalesce(m.sourceVolume), "no volume"), at = abspath(m.containerPath) } if can(abspath(m.containerPath))],
    ) }],
    [for role in local.roles : { name = local.names[role], mounts = [for m in local.set[role].mount_points : { volume = m.sourceVolume, at = abspath(m.containerPath) }] }],
  )

  refusals = concat(
    [for c in local.clashes : "Port ${c.port} of ${c.owner} is also that of ${c.other}: use another port."],
    [for at, names in { for u in local.upstreams : u.at => u.name... } : "Upstreams ${join(" and ", names)} have the same address ${at}: change a localBindPort." if length(names) > 1],
    [for names in values({ for u in local.upstreams : u.to => u.name... }) : "Upstream ${names[0]} is given twice: remove one." if length(names) > 1 && !local.gateway],
    [for u in local.upstreams : "Upstream ${u.name} is not a valid service name: use up to 256 lower-case letters, digits, '-' and '_'." if u.service && !can(regex(local.service_name, u.name))],
    [for name in [local.identity.name] : "${name} is not a valid service name: use up to 256 lower-case letters, digits, '-' and '_', and no name that ends with -sidecar-proxy." if !can(regex(local.service_name, name)) || (!local.gateway && endswith(name, "-sidecar-proxy"))],
    [for k, v in local.meta : "Service metadata ${k} has a key or a value that Consul refuses: a key has up to 128 letters, digits, '-' and '_' and does not begin with consul-, a value is a text of up to 512 characters."
    if !can(regex("^[a-zA-Z0-9_-]{1,128}$", k)) || startswith(k, "consul-") || try(length(v) > 512, true)],
    [for n in [length(local.meta)] : "The service has ${n} pairs of metadata, and Consul allows 61 besides those of consul-ecs: remove some." if n > 61],
    [for c in local.applications : "Container ${c.name} runs as the user of the proxy or of health-sync: use another user than 5995 and 5996." if can(regex("^599[56](:|$)", c.container.user))],
    flatten([for c in local.mounts : [
      for m in c.mounts : "Container ${c.name} mounts ${m.volume} at ${m.at}, where the containers of the mesh share ${local.bootstrap_dir}: mount it elsewhere."
      if !contains([local.volume, "a tmpfs"], m.volume) && startswith("${m.at}/", "${local.bootstrap_dir}/")
    ]]),
    flatten([for c in local.mounts : [
      for at, volumes in { for m in c.mounts : m.at => m.volume... } :
      "Container ${c.name} mounts ${join(" and ", volumes)} at ${at}, so it would not start: change a path." if length(volumes) > 1
    ]]),
    [for on in [local.transparent && local.fargate] : "The transparent proxy does not work on Fargate, which does not grant NET_ADMIN: set transparentProxy.enabled to false." if on],
    # Only root writes the rules that redirect traffic, and they leave out the other two users.
    [for role, user in { mesh_init = "0", proxy = "5995", health_sync = "5996" } :
      "sidecars sets user ${local.set[role].user} for container ${local.names[role]}, which runs as ${user} with the transparent proxy: remove it from sidecars."
    if local.transparent && try(split(":", local.set[role].user)[0] != user, false)],
    flatten([for role in local.roles : [
      for name, values in { for v in local.set[role].environment : v.name => v... } :
      "sidecars sets ${name} in the environment of container ${local.names[role]} ${length(values) > 1 ? "twice, with that of all" : "and so does the module"}: remove it."
      if length(values) > 1 || contains(["CONSUL_ECS_CONFIG_JSON", "CONSUL_ECS_LOG_JSON", "CONSUL_ECS_IGNORE_CONTAINERS", "CONSUL_AGENT_CONFIGURATION"], name)
    ]]),
    [for name, values in local.choice : "Container ${name} has ${local.label} ${values[0]}: use true or false." if !contains(concat([""], local.yes, local.no), values[0])],
    [for type in var.requires_compatibilities : "requires_compatibilities has EXTERNAL, and external instances have no network mode for the mesh: register this task without the module." if type == "EXTERNAL"],
    [for os in [try(coalesce(var.runtime_platform.operating_system_family), "LINUX")] : "The containers of the mesh need Linux, and operating_system_family is ${os}." if os != "LINUX"],
  )
}

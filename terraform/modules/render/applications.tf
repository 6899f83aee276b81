# Each application behind the proxy, as `consul-ecs admit` puts it there.
locals {
  # A container that log routers need would wait for itself, so neither they nor what they
  # depend on are applications. Three steps of dependsOn are followed.
  dependencies = { for c in var.container_definitions : c.name => try([for d in c.dependsOn : d.containerName if !contains(local.reserved, d.containerName)], [])... }
  routers      = [for c in var.container_definitions : c.name if try(c.firelensConfiguration, null) != null]
  routers_1    = distinct(concat(local.routers, flatten([for n in local.routers : lookup(local.dependencies, n, [])])))
  routers_2    = distinct(concat(local.routers_1, flatten([for n in local.routers_1 : lookup(local.dependencies, n, [])])))
  routers_3    = distinct(concat(local.routers_2, flatten([for n in local.routers_2 : lookup(local.dependencies, n, [])])))
  exempt       = [for c in var.container_definitions : c.name if contains(["false", "False", "FALSE", "f", "F", "0"], try(c.dockerLabels["consul.hashicorp.com/depends"], "true"))]
  receivers    = [for c in var.container_definitions : c.name if try(length(c.entryPoint), 0) == 0 && try(c.command[0], "") == "token-receive"]
  # The names of containers that AWS adds to tasks: Service Connect's proxy, GuardDuty's agent.
  of_aws  = [for c in var.container_definitions : c.name if can(regex("^(ecs-service-connect-|aws-guardduty-agent-)", c.name))]
  ignored = [for c in var.container_definitions : c.name if contains(concat(local.routers_3, local.exempt, local.receivers, local.of_aws), c.name)]

  # Words of an entryPoint, each with an end mark, so that a regular expression finds the
  # flags of an app-entrypoint that is there already.
  mark       = "\u001f"
  hand_line  = "^(?:[^${local.mark}]*/)?consul-ecs${local.mark}app-entrypoint${local.mark}"
  hand_flag  = "--?compat${local.mark}|--?[^${local.mark}=-][^${local.mark}=]*=[^${local.mark}]*${local.mark}|--?[^${local.mark}=-][^${local.mark}=]*${local.mark}(?:[^${local.mark}]*${local.mark})?"
  await      = local.agent ? "127.0.0.1:${local.ready_port}" : "http://127.0.0.1:${local.ready_port}/ready"
  gate_edge  = { containerName = local.gate, condition = "SUCCESS" }
  proxy_edge = { containerName = local.names.proxy, condition = "HEALTHY" }

  # What is known about each container, null or absent being the same.
  described = [for c in var.container_definitions : {
    container      = c
    name           = c.name
    essential      = coalesce(try(c.essential, null), true)
    stop           = try(c.stopTimeout, null)
    health_checked = try(length(c.healthCheck.command) > 0 && c.healthCheck.command[0] != "NONE", false)
    entry          = try([for w in c.entryPoint : w], [])
    command        = [for w in(lookup(c, "command", null) == null ? [] : c.command) : w] # try would make all words unknown with one
    wrapped_by_hand = (
      can(regex(local.hand_line, join("", [for w in try([for w in c.entryPoint : w], []) : "${w}${local.mark}"]))) ? "entryPoint" :
      try(length(c.entryPoint), 0) > 0 ? "" :
      can(regex(local.hand_line, join("", [for w in try([for w in c.command : w], []) : "${w}${local.mark}"]))) ? "command" : ""
    )
    application = !contains(local.ignored, c.name)
  }]
  applications = [for c in local.described : c if c.application]

  # Flags of hand-written lines, as lists of their words.
  hand_flags = { for c in local.described : c.name => c.wrapped_by_hand != "entryPoint" ? [] : [
    for f in regexall(local.hand_flag, regex("${local.hand_line}((?:${local.hand_flag})*)", join("", [for w in c.entry : "${w}${local.mark}"]))[0]) :
    split(local.mark, trimsuffix(f, local.mark))
  ]... }

  wrapped = { for c in local.applications : c.name => {
    entryPoint = c.wrapped_by_hand == "command" ? [] : concat(
      [local.program, "app-entrypoint", "-await-proxy", local.await],
      local.bootstrap_dir == "/consul" ? [] : ["-dir", local.bootstrap_dir],
      c.stop == null ? [] : ["-stop-timeout", "${c.stop}s"],
      flatten([for f in local.hand_flags[c.name][0] : f if !contains(concat(
        ["await-proxy"], local.bootstrap_dir == "/consul" ? [] : ["dir"], c.stop == null ? [] : ["stop-timeout"],
      ), regex("^--?([^=]*)", f[0])[0])]),
      var.shutdown_delay == null || anytrue([for f in local.hand_flags[c.name][0] : can(regex("^--?shutdown-delay(=|$)", f[0]))]) ? [] : ["-shutdown-delay", var.shutdown_delay],
      local.behind[c.name][0],
    )
  } if !local.gateway && !contains(local.unwrapped, c.name) }

  # Containers that are no applications have their edges lead to the containers that there are.
  made = [for role in local.roles : local.names[role]]
  corrected = { for c in local.described : c.name => [
    for d in c.container.dependsOn : merge(d, { containerName = contains(local.proxies, d.containerName) ? local.names.proxy : d.containerName })
    if !contains(local.reserved, d.containerName) || contains(local.proxies, d.containerName) || contains(local.made, d.containerName)
  ] if(local.gateway || !c.application) && try(anytrue([for d in c.container.dependsOn : contains(local.reserved, d.containerName)]), false) }

  application_containers = [for c in local.described : merge(
    c.container,
    { essential = c.essential },
    c.health_checked ? {
      healthCheck = merge(
        c.container.healthCheck,
        { command = concat(
          contains(["CMD", "CMD-SHELL"], c.container.healthCheck.command[0]) ? [] :
          length(c.container.healthCheck.command) == 1 && strcontains(c.container.healthCheck.command[0], " ") ? ["CMD-SHELL"] : ["CMD"],
          c.container.healthCheck.command,
        ) },
        # It runs while the application waits for the proxy.
        can(local.wrapped[c.name]) && try(c.container.healthCheck.startPeriod, null) == null ? { startPeriod = 60 } : null,
      )
    } : null,
    can(local.wrapped[c.name]) ? {
      dependsOn = concat(try([for d in c.container.dependsOn : d if !contains(local.reserved, d.containerName)], []), [local.gate_edge])
      mountPoints = concat(
        try([for m in c.container.mountPoints : m], []),
        anytrue(try([for m in c.container.mountPoints : try(abspath(m.containerPath) == abspath(local.bootstrap_dir), false)], [])) ? [] : [local.mount_read_only],
      )
    } : null,
    can(local.corrected[c.name]) ? { dependsOn = local.corrected[c.name] } : null,
    try(length(local.wrapped[c.name].entryPoint), 0) > 0 ? { entryPoint = local.wrapped[c.name].entryPoint } : null,
    # That the command is the program shows no longer in what is written.
    try(local.verdicts[c.name] == "wrap_and_mark", false) ? { dockerLabels = merge(try(c.container.dockerLabels, null), { "consul.hashicorp.com/wrap" = "true" }) } : null,
    contains(local.unwrapped, c.name) && c.wrapped_by_hand == "entryPoint" ? { entryPoint = length(local.behind[c.name][0]) > 0 ? local.behind[c.name][0] : null } : null,
    contains(local.unwrapped, c.name) ? {
      dependsOn = concat(try([for d in c.container.dependsOn : d if !contains(local.reserved, d.containerName)], []), [local.proxy_edge])
    } : null,
  )]
}

module "containers" {
  source = "../containers"

  container_definitions = concat(
    local.application_containers,
    # ECS refuses some empty members, and others are a change in each plan.
    [for c in local.sidecars : { for k, v in c : k => v if v != null && try(length(v) > 0, true) }],
  )
}

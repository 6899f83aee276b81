# The containers of the mesh. Only the copy of the program is ordered by ECS: all other
# containers wait for each other inside, which is faster than edges of dependsOn.
locals {
  volume          = "consul_data"
  mount           = { sourceVolume = local.volume, containerPath = local.bootstrap_dir }
  mount_read_only = merge(local.mount, { readOnly = true })

  # The containers of the mesh end after the applications: 15 s for the proxy's end, the
  # logouts and the agent's leave.
  longest_stop = try(max([for c in local.applications : c.stop == null ? 30 : c.stop]...), 0)
  stop_wanted  = (local.longest_stop == 0 ? 30 : local.longest_stop) + 15
  stop         = local.maybe_fargate && local.longest_stop <= 120 ? min(local.stop_wanted, 120) : local.stop_wanted
  stop_of      = { for role in keys(local.names) : role => try(local.set[role].stop_timeout, local.stop) }

  roles = concat(
    local.agent ? ["install", "client"] : [],
    ["mesh_init", "proxy"],
    !local.agent || local.login || try(length(local.configuration.healthSyncContainers), 0) > 0 ? ["health_sync"] : [],
  )

  # A log_configuration without a driver could not be registered, and counts as none.
  logs = try(concat(
    [for v in [var.log_configuration] : v if try(v.logDriver, null) != null],
    # Without what joins the lines of an application: those of the mesh's containers would be joined as well.
    [for c in concat(local.serving, local.collecting) : merge(c.container.logConfiguration, try(c.container.logConfiguration.options, null) == null ? null : {
      options = { for k, v in c.container.logConfiguration.options : k => v if !contains(["awslogs-multiline-pattern", "awslogs-datetime-format"], k) }
    }) if try(c.container.logConfiguration, null) != null],
  )[0], null)

  environment = {
    configuration = { name = "CONSUL_ECS_CONFIG_JSON", value = local.configuration_json }
    ignored       = [for names in [join(",", concat(local.ignored, var.ignore_containers))] : { name = "CONSUL_ECS_IGNORE_CONTAINERS", value = names } if names != ""]
    json          = [for on in [try(local.configuration.logJSON, false)] : { name = "CONSUL_ECS_LOG_JSON", value = "true" } if on]
    agent         = [for hcl in [var.client.configuration] : { name = "CONSUL_AGENT_CONFIGURATION", value = hcl } if hcl != ""]
  }

  # Envoy's log level by that of the configuration.
  envoy_level = try({ TRACE = "trace", DEBUG = "debug", INFO = "info", WARN = "warning", ERROR = "error" }[local.configuration.logLevel], "warning")

  # A task whose health-sync or agent is away has a state in Consul that gets stale.
  restart = { enabled = true, restartAttemptPeriod = 60 }
  # The shared volume belongs to this user, and root without capabilities could not write to it.
  mesh_user = "5996:5996"

  # The settings of each container.
  own = {
    install = {
      image       = var.images.consul_ecs, essential = false, memory = 32, mount = local.mount
      command     = ["install", "-to", local.bootstrap_dir]
      environment = local.environment.json
    }
    client = {
      image      = var.images.consul, essential = true, memory = 128, mount = local.mount
      entryPoint = [local.program, "client-entrypoint"]
      command = concat(
        ["-stop-timeout", "${local.stop_of.client}s"],
        flatten([for address in var.client.retry_join : ["-retry-join", address]]),
        var.client.datacenter == "" ? [] : ["-datacenter", var.client.datacenter],
        var.client.arguments,
      )
      environment   = concat(local.environment.json, [local.environment.configuration], local.environment.ignored, local.environment.agent)
      secrets       = concat(var.secrets, var.client.secrets)
      restartPolicy = local.restart
      stopTimeout   = local.stop_of.client
      dependsOn     = [local.gate_edge]
    }
    mesh_init = {
      image       = var.images.consul_ecs, essential = false, memory = 32, mount = local.mount
      command     = ["mesh-init"]
      environment = concat(local.environment.json, [local.environment.configuration], local.environment.ignored)
      secrets     = var.secrets
      # It writes the rules that redirect traffic, and files on a volume that belongs to another user.
      user                = local.transparent ? "0" : local.mesh_user
      readOnly            = local.transparent || local.named_upstreams ? null : true # it writes /etc/hosts and /etc/resolv.conf
      initProcess         = true
      capabilities_to_add = !local.transparent ? [] : concat(["NET_ADMIN"], length(local.drop.mesh_init) > 0 ? ["CHOWN", "DAC_OVERRIDE"] : [])
    }
    proxy = {
      image      = local.direct ? var.images.envoy : var.images.dataplane, essential = true, memory = 128, mount = local.mount_read_only
      user       = "5995:5996"
      entryPoint = [local.program, "envoy-entrypoint", "-stop-timeout", "${local.stop_of.proxy}s"]
      command = (local.direct ?
        ["envoy", "--config-path", "${local.bootstrap_dir}/envoy-bootstrap.json", "--log-level", local.envoy_level, "--disable-hot-restart",
        "--concurrency", tostring(var.envoy_concurrency), "--drain-time-s", "30", "--drain-strategy", "immediate"] :
        concat(
          ["consul-dataplane", "-config-file", "${local.bootstrap_dir}/consul-dataplane.json"],
          var.envoy_concurrency == 2 ? [] : ["-envoy-concurrency", tostring(var.envoy_concurrency)],
        )
      )
      environment = concat(local.environment.json, local.environment.ignored)
      secrets     = local.agent ? [] : var.secrets # envoy-entrypoint reaches the servers, too
      healthCheck = { command = ["CMD", local.program, "net-dial", "127.0.0.1:${local.ready_port}"], interval = 5, timeout = 5, retries = 10 }
      ulimits     = [{ name = "nofile", softLimit = 1048576, hardLimit = 1048576 }]
      stopTimeout = local.stop_of.proxy
      dependsOn   = [local.gate_edge]
    }
    health_sync = {
      image         = var.images.consul_ecs, essential = false, memory = 32, mount = local.mount
      command       = ["health-sync", "-stop-timeout", "${local.stop_of.health_sync}s"]
      environment   = concat(local.environment.json, [local.environment.configuration], local.environment.ignored)
      secrets       = var.secrets
      restartPolicy = local.restart
      initProcess   = true
      stopTimeout   = local.stop_of.health_sync
    }
  }

  # The user's settings, those of the role over those of all.
  set = { for role in local.roles : role => merge(
    try({ for k, v in var.sidecars["all"] : k => v if v != null }, {}),
    try({ for k, v in var.sidecars[role] : k => v if v != null }, {}),
    { for k in ["environment", "secrets", "port_mappings", "mount_points"] : k => concat(try(var.sidecars["all"][k], []), try(var.sidecars[role][k], [])) },
    { docker_labels = merge(try(var.sidecars["all"].docker_labels, {}), try(var.sidecars[role].docker_labels, {})) },
  ) }

  # Capabilities are those of the role, else those of all.
  drop = { for role in local.roles : role => try(concat(local.set[role].drop_capabilities), ["ALL"]) }
  add  = { for role in local.roles : role => concat(try(local.own[role].capabilities_to_add, []), try(concat(local.set[role].add_capabilities), [])) }

  sidecars = [for role in local.roles : {
    name       = local.names[role]
    image      = try(local.set[role].image, local.own[role].image)
    essential  = try(local.set[role].essential, local.own[role].essential)
    entryPoint = try(local.own[role].entryPoint, null)
    command    = local.own[role].command
    cpu        = try(local.set[role].cpu, null)
    memory     = try(local.set[role].memory, null)
    memoryReservation = try(
      local.set[role].memory_reservation,
      var.memory == null && !can(local.set[role].memory) ? local.own[role].memory : null,
    )
    user                   = try(local.set[role].user, local.own[role].user, local.mesh_user)
    readonlyRootFilesystem = try(local.set[role].readonly_root_filesystem, local.own[role].readOnly, true)
    environment            = try(concat(try(local.own[role].environment, []), local.set[role].environment), null)
    secrets                = try(concat(try(local.own[role].secrets, []), local.set[role].secrets), null)
    mountPoints            = concat([local.own[role].mount], [for m in local.set[role].mount_points : { for k, v in m : k => v if k != "readOnly" || v == true }])
    portMappings           = [for p in local.set[role].port_mappings : { for k, v in p : k => v if v != null }]
    dependsOn              = try(local.own[role].dependsOn, null)
    startTimeout           = try(local.set[role].start_timeout, null)
    stopTimeout            = try(local.set[role].stop_timeout, local.own[role].stopTimeout, null)
    ulimits                = try(local.own[role].ulimits, null)
    dockerLabels = merge(
      local.set[role].docker_labels,
      { "consul.hashicorp.com/injected-by" = "consul-ecs" },
      role == "proxy" ? { "consul.hashicorp.com/kind" = local.kind } : null,
    )
    restartPolicy = try({ for k, v in {
      enabled = local.set[role].restart_policy.enabled
      # The work of those that exit with 0 is done.
      ignoredExitCodes = (!contains(["install", "mesh_init"], role) ? local.set[role].restart_policy.ignored_exit_codes :
        distinct(concat([0], try([for code in local.set[role].restart_policy.ignored_exit_codes : code], [])))
      )
      restartAttemptPeriod = local.set[role].restart_policy.restart_attempt_period
    } : k => v if v != null }, local.own[role].restartPolicy, null)
    healthCheck = try(merge(local.own[role].healthCheck, { for k, v in {
      interval    = try(local.set[role].health_check.interval, null)
      timeout     = try(local.set[role].health_check.timeout, null)
      retries     = try(local.set[role].health_check.retries, null)
      startPeriod = try(local.set[role].health_check.start_period, null)
    } : k => v if v != null }), null)
    linuxParameters = { for k, v in {
      initProcessEnabled = try(local.own[role].initProcess, null)
      capabilities       = length(local.add[role]) + length(local.drop[role]) == 0 ? null : { add = local.add[role], drop = local.drop[role] }
    } : k => v if v != null }
    logConfiguration = try({ for k, v in {
      logDriver     = local.set[role].log_configuration.log_driver
      options       = local.set[role].log_configuration.options
      secretOptions = local.set[role].log_configuration.secret_options
    } : k => v if v != null }, local.logs)
  }]
}

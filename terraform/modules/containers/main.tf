# ECS adds defaults to a definition, and the provider compares the result with the
# configuration. A default that is absent from the configuration would replace the task
# definition in each plan.
locals {
  filled = [for c in var.container_definitions : merge(
    c,
    # Both lists or none.
    try(c.linuxParameters.capabilities, null) == null ? null : {
      linuxParameters = merge(c.linuxParameters, { capabilities = {
        add  = try([for name in c.linuxParameters.capabilities.add : name], [])
        drop = try([for name in c.linuxParameters.capabilities.drop : name], [])
      } })
    },
    can(c.portMappings[0]) ? {
      portMappings = [for p in c.portMappings : merge(p, try(p.containerPort, null) == null || try(p.protocol, null) != null ? null : { protocol = "tcp" })]
    } : null,
    can(keys(c.healthCheck)) ? {
      healthCheck = merge(c.healthCheck, { for k, v in { interval = 30, timeout = 5, retries = 3 } : k => v if try(c.healthCheck[k], null) == null })
    } : null,
    can(keys(c.restartPolicy)) ? {
      restartPolicy = merge(c.restartPolicy, try(c.restartPolicy.restartAttemptPeriod, null) == null ? { restartAttemptPeriod = 300 } : null)
    } : null,
    try(c.firelensConfiguration, null) != null && try(c.user, null) == null ? { user = "0" } : null,
  )]
}

# Without any provider. That the result is what consul-ecs admit makes is tested in Go.
variables {
  images                   = { consul_ecs = "registry.example.com/consul-ecs:1.0.0-beta.1" }
  family                   = "Web"
  requires_compatibilities = ["FARGATE"]
  memory                   = 512
  configuration            = { consulServers = { hosts = "consul.example.com" }, proxy = { mode = "direct" } }
  container_definitions    = [{ name = "web", image = "web:1", command = ["/web"], portMappings = [{ containerPort = 8080 }] }]
}

run "metadata_that_is_null_is_absent" {
  command = plan

  variables {
    family                = "web"
    container_definitions = [{ name = "web", image = "web:1", entryPoint = ["/web"], portMappings = [{ containerPort = 8080 }] }]
    configuration         = { consulServers = { hosts = "consul.example.com" }, service = { meta = { version = null, team = "shop" } } }
  }

  assert {
    condition     = jsondecode(output.container_definitions[1].environment[0].value).service.meta == { team = "shop" }
    error_message = output.container_definitions[1].environment[0].value
  }
}

run "one_gate" {
  command = plan

  assert {
    condition     = [for c in output.container_definitions : [for d in try(c.dependsOn, []) : "${d.containerName} ${d.condition}"]] == [["consul-ecs-mesh-init SUCCESS"], [], ["consul-ecs-mesh-init SUCCESS"], []]
    error_message = jsonencode(output.container_definitions)
  }
  assert {
    condition     = output.name == "web" && output.proxy_container_name == "sidecar-proxy" && output.configuration.service.port == 8080
    error_message = jsonencode(output.configuration)
  }
  assert {
    condition     = join(",", output.volumes) == "consul_data" && length(output.tags) == 1
    error_message = "volumes or tags"
  }
}

run "generation_follows_from_the_configuration" {
  command = plan

  variables {
    configuration = { consulHTTPAddr = "http://10.0.0.4:8500" }
  }

  assert {
    condition     = [for c in output.container_definitions : c.name] == ["web", "consul-ecs-install", "consul-client", "consul-ecs-mesh-init", "sidecar-proxy"]
    error_message = jsonencode(output.container_definitions)
  }
}

run "delay_of_the_application_wins" {
  command = plan

  variables {
    shutdown_delay = "5s"
    container_definitions = [
      { name = "web", image = "web:1", entryPoint = ["/consul/consul-ecs", "app-entrypoint", "-shutdown-delay", "10s", "/web"] },
      { name = "other", image = "web:1", entryPoint = ["/web"] },
    ]
  }

  assert {
    condition     = [for c in slice(output.container_definitions, 0, 2) : join(" ", slice(c.entryPoint, 4, length(c.entryPoint)))] == ["-shutdown-delay 10s /web", "-shutdown-delay 5s /web"]
    error_message = jsonencode(output.container_definitions)
  }
}

run "what_cannot_be_wrapped_is_named" {
  command = plan

  variables {
    container_definitions = [{ name = "web", image = "web:1" }]
  }

  assert {
    condition     = join(",", output.unwrapped) == "web" && output.container_definitions[0].dependsOn[0].condition == "HEALTHY"
    error_message = jsonencode(output.container_definitions[0])
  }
}

run "a_command_that_is_no_program_is_left_to_the_image" {
  command = plan

  variables {
    container_definitions = [
      { name = "web", image = "keycloak:26.0", command = ["start", "--optimized"] },
      { name = "left", image = "web:1", command = ["/web"], dockerLabels = { "consul.hashicorp.com/wrap" = "false" } },
      { name = "chosen", image = "web:1", command = ["web"], dockerLabels = { "consul.hashicorp.com/wrap" = "true" } },
    ]
  }

  assert {
    condition     = [for c in slice(output.container_definitions, 0, 3) : can(c.entryPoint)] == [false, false, true]
    error_message = jsonencode(output.container_definitions)
  }
  assert {
    condition     = length(output.warnings) == 1 && strcontains(output.warnings[0], "Container web is not wrapped, because its command may be arguments of its image's ENTRYPOINT")
    error_message = join("\n", output.warnings)
  }
}

run "a_choice_is_true_or_false" {
  command = plan

  variables {
    container_definitions = [{ name = "web", image = "web:1", command = ["/web"], dockerLabels = { "consul.hashicorp.com/wrap" = "yes" } }]
  }

  expect_failures = [output.container_definitions]
}

run "tags_of_the_module" {
  command = plan

  variables {
    tags   = { team = "shop", "consul.hashicorp.com/mesh" = "false" }
    module = { name = "mesh-task", version = "1" }
  }

  assert {
    condition = tomap(output.tags) == tomap({
      team                                  = "shop"
      "consul.hashicorp.com/mesh"           = "false"
      "consul.hashicorp.com/service-name"   = "web"
      "consul.hashicorp.com/module"         = "mesh-task"
      "consul.hashicorp.com/module-version" = "1"
    })
    error_message = jsonencode(output.tags)
  }
}

# The volume belongs to 5996, so root writes to it with these capabilities only.
run "containers_without_capabilities_can_write_to_the_volume" {
  command = plan

  variables {
    requires_compatibilities = ["EC2"]
  }

  assert {
    condition     = [for c in output.container_definitions : "${try(c.user, "")} ${join(",", c.linuxParameters.capabilities.add)}" if c.name != "web"] == ["0 NET_ADMIN,CHOWN,DAC_OVERRIDE", "5995:5996 ", "5996:5996 "]
    error_message = jsonencode(output.container_definitions)
  }
}

run "agent_without_capabilities_can_write_to_the_volume" {
  command = plan

  variables {
    configuration = { consulHTTPAddr = "http://10.0.0.4:8500" }
  }

  assert {
    condition     = [for c in output.container_definitions : try(c.user, "") if c.name != "web"] == ["5996:5996", "5996:5996", "5996:5996", "5995:5996"]
    error_message = jsonencode(output.container_definitions)
  }
}

run "nulls_are_defaults" {
  command = plan

  variables {
    family                   = "edge"
    requires_compatibilities = null
    memory                   = null
    runtime_platform         = null
    placement_constraints    = null
    container_definitions    = null
    volumes                  = null
    configuration            = { gateway = { kind = "mesh-gateway" } }
    images                   = { consul_ecs = "registry.example.com/consul-ecs:1.0.0-beta.1", envoy = null, dataplane = null, consul = null }
    secrets                  = null
    client                   = null
    log_configuration        = null
    shutdown_delay           = null
    sidecars                 = null
    tags                     = null
    module                   = null
  }

  assert {
    condition     = [for c in output.container_definitions : c.name] == ["consul-ecs-install", "consul-client", "consul-ecs-mesh-init", "sidecar-proxy"]
    error_message = jsonencode(output.container_definitions)
  }
}

run "names_of_containers" {
  command = plan

  variables {
    container_definitions = [{ name = "consul-client", image = "web:1" }]
    sidecars              = { dataplane = {} }
  }

  expect_failures = [var.container_definitions, var.sidecars]
}

run "ignored_containers_are_names_or_their_beginnings" {
  command = plan

  variables {
    ignore_containers = ["audit", "datadog-*", "*", "a*b"]
  }

  expect_failures = [var.ignore_containers]
}

run "containers_that_end_cannot_be_essential" {
  command = plan

  variables {
    sidecars = { mesh_init = { essential = true } }
  }

  expect_failures = [var.sidecars]
}

run "without_an_essential_application" {
  command = plan

  variables {
    container_definitions = [{ name = "web", image = "web:1", essential = false }]
  }

  expect_failures = [output.container_definitions]
}

run "proxies_of_the_user_are_refused" {
  command = plan

  variables {
    container_definitions = [
      { name = "web", image = "web:1" },
      { name = "proxy", image = "envoy:1", dockerLabels = { "consul.hashicorp.com/kind" = "connect-proxy:web" } },
    ]
  }

  expect_failures = [output.container_definitions]
}

run "applications_without_a_proxy_are_refused" {
  command = plan

  variables {
    container_definitions = [{ name = "web", image = "web:1", dockerLabels = { "consul.hashicorp.com/native" = "true" } }]
  }

  expect_failures = [output.container_definitions]
}

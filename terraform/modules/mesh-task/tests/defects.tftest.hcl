# Defects of earlier modules, each with a test that it is gone.
provider "aws" {
  region = "us-east-1"
}

variables {
  consul_ecs_image    = "registry.example.com/consul-ecs:1.0.0-beta.1"
  family              = "web"
  port                = 8080
  consul_server_hosts = "consul.example.com"
  container_definitions = [
    { name = "web", image = "web:1", entryPoint = ["/web"], healthCheck = { command = ["CMD", "/web", "check"] } },
  ]
}

run "sidecars_are_essential_by_variable" {
  command = plan

  variables {
    sidecars = { proxy = { essential = false }, health_sync = { essential = true } }
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[*].essential == [true, false, false, true]
    error_message = "essential is not as sidecars has it"
  }
}

run "capabilities_have_both_lists_or_none" {
  command = plan

  variables {
    requires_compatibilities = ["EC2"]
    sidecars                 = { all = { drop_capabilities = [] } }
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[1].linuxParameters.capabilities == { add = ["NET_ADMIN"], drop = [] }
    error_message = "a list is missing"
  }

  assert {
    condition     = !can(jsondecode(module.task.task_definition.container_definitions)[3].linuxParameters.capabilities)
    error_message = "empty capabilities would be a change in each plan"
  }
}

run "capabilities_of_applications_have_both_lists" {
  command = plan

  variables {
    container_definitions = [
      { name = "web", image = "web:1", entryPoint = ["/web"], linuxParameters = { initProcessEnabled = true, capabilities = { drop = ["ALL"] } } },
      { name = "null", image = "web:1", entryPoint = ["/web"], linuxParameters = { capabilities = { add = null, drop = null } } },
    ]
  }

  assert {
    condition = [for c in slice(jsondecode(module.task.task_definition.container_definitions), 0, 2) : c.linuxParameters] == [
      { initProcessEnabled = true, capabilities = { add = [], drop = ["ALL"] } },
      { capabilities = { add = [], drop = [] } },
    ]
    error_message = module.task.task_definition.container_definitions
  }
}

run "empty_log_configuration_is_none" {
  command = plan

  variables {
    log_configuration = {}
  }

  assert {
    condition     = !anytrue([for c in jsondecode(module.task.task_definition.container_definitions) : can(c.logConfiguration)])
    error_message = "an empty logConfiguration cannot be registered"
  }
}

run "transparent_proxy_is_off_by_default_where_fargate_is_possible" {
  command = plan


  assert {
    condition     = jsondecode(jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value).transparentProxy.enabled == false
    error_message = "the defaults do not plan"
  }
}

run "nulls_are_as_absent" {
  command = plan

  variables {
    container_definitions              = [{ name = "web", image = "web:1", entryPoint = null, command = ["/web"], dockerLabels = { "consul.hashicorp.com/wrap" = "true" }, dependsOn = null, mountPoints = null, healthCheck = null, essential = null, portMappings = null }]
    application_shutdown_delay_seconds = 5
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[0].entryPoint == ["/consul/consul-ecs", "app-entrypoint", "-await-proxy", "http://127.0.0.1:22000/ready", "-shutdown-delay", "5s"]
    error_message = "a null entryPoint must not disable the delay"
  }

  assert {
    condition     = !can(jsondecode(module.task.task_definition.container_definitions)[0].portMappings) && !can(jsondecode(module.task.task_definition.container_definitions)[0].healthCheck)
    error_message = "nulls are written"
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[0].essential
    error_message = "absent means essential"
  }
}

run "nulls_at_any_depth_of_the_configuration_are_as_absent" {
  command = plan

  variables {
    upstreams = [
      { destinationName = "api", localBindPort = 9191, datacenter = null, meshGateway = { mode = null }, config = { a = null, b = null, c = "\"x\":null,", d = null } },
      { destinationName = "db", localBindPort = 9192, destinationPeer = null },
    ]
    consul_ecs_config = {
      service = { weights = { passing = null, warning = null }, networkResilienceConfig = { outlierDetection = { interval = null, maxFailures = 2 } } }
      proxy   = { config = { list = [null, { "a\"b" = null }], texts = ["a,", ":null", "{", ":null"] } }
    }
  }

  assert {
    condition = [for c in [jsondecode(jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value)] : jsonencode([c.proxy.upstreams, c.proxy.config, c.service])] == [jsonencode([
      [{ destinationName = "api", localBindPort = 9191, config = { c = "\"x\":null," } }, { destinationName = "db", localBindPort = 9192 }],
      { list = [null, null], texts = ["a,", ":null", "{", ":null"] }, { meta = {}, name = "web", networkResilienceConfig = { outlierDetection = { maxFailures = 2 } }, port = 8080, tags = [] },
    ])]
    error_message = jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value
  }
}

run "health_check_without_essential_is_synced" {
  command = plan


  assert {
    condition     = jsondecode(jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value).healthSyncContainers == ["web"]
    error_message = "essential is true by default"
  }
}

run "transparent_proxy_of_consul_ecs_config_counts" {
  command = plan

  variables {
    requires_compatibilities = ["EC2"]
    enable_transparent_proxy = false
    exclude_inbound_ports    = [9100]
    consul_ecs_config        = { transparentProxy = { enabled = true, excludeUIDs = ["1234"] } }
  }

  assert {
    condition     = jsondecode(jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value).transparentProxy.excludeInboundPorts == [9100]
    error_message = "the variables of an enabled transparent proxy are left out"
  }

  assert {
    condition     = jsondecode(jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value).transparentProxy.excludeUIDs == ["1234"]
    error_message = "consul_ecs_config.transparentProxy is overridden"
  }
}

run "family_too_long_for_the_task_role" {
  command = plan

  variables {
    family                = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    create_task_role      = true
    create_execution_role = false
    task_role             = { arn = "arn:aws:iam::123456789012:role/a" }
    execution_role        = { arn = "arn:aws:iam::123456789012:role/b" }
  }

  expect_failures = [var.family]
}

run "family_too_long_for_the_execution_role" {
  command = plan

  variables {
    family                = "fffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    create_task_role      = false
    create_execution_role = true
    task_role             = { arn = "arn:aws:iam::123456789012:role/a" }
    execution_role        = { arn = "arn:aws:iam::123456789012:role/b" }
  }

  expect_failures = [var.family]
}

run "unused_variables_are_named" {
  command = plan

  variables {
    consul_agent_configuration = "log_level = \"warn\""
  }

  expect_failures = [check.unused_variables]
}

run "an_application_that_is_not_wrapped_is_named" {
  command = plan

  variables {
    container_definitions = [{ name = "web", image = "web:1" }]
  }

  expect_failures = [check.applications]
}

run "shutdown_delay_null" {
  command = plan

  variables {
    application_shutdown_delay_seconds = null
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[0].entryPoint == ["/consul/consul-ecs", "app-entrypoint", "-await-proxy", "http://127.0.0.1:22000/ready", "/web"]
    error_message = "entryPoint is another"
  }
}

run "shutdown_delay_negative" {
  command = plan

  variables {
    application_shutdown_delay_seconds = -1
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[0].entryPoint == ["/consul/consul-ecs", "app-entrypoint", "-await-proxy", "http://127.0.0.1:22000/ready", "-shutdown-delay", "0s", "/web"]
    error_message = "entryPoint is another"
  }
}

run "shutdown_delay_5" {
  command = plan

  variables {
    application_shutdown_delay_seconds = 5
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[0].entryPoint == ["/consul/consul-ecs", "app-entrypoint", "-await-proxy", "http://127.0.0.1:22000/ready", "-shutdown-delay", "5s", "/web"]
    error_message = "entryPoint is another"
  }
}

run "an_application_that_cannot_be_wrapped_waits_for_the_proxy" {
  command = plan

  variables {
    container_definitions = [{ name = "web", image = "web:1", dockerLabels = { "consul.hashicorp.com/wrap" = "false" }, dependsOn = [{ containerName = "consul-dataplane", condition = "HEALTHY" }] }]
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[0].dependsOn == [{ containerName = "sidecar-proxy", condition = "HEALTHY" }]
    error_message = "it must start after the proxy"
  }

  assert {
    condition     = !can(jsondecode(module.task.task_definition.container_definitions)[0].entryPoint)
    error_message = "its ENTRYPOINT is not known"
  }
}

run "nulls_in_members_and_duplicates" {
  command = plan

  variables {
    requires_compatibilities = ["EC2"]
    tags                     = { team = "shop", owner = null }
    sidecars                 = { all = null, proxy = { environment = null, docker_labels = null } }
    consul_service_tags      = ["v1", "v1", null]
    consul_service_meta      = { owner = null }
    exclude_outbound_cidrs   = ["10.0.0.0/8", "10.0.0.0/8"]
    upstreams                = [{ destinationName = "api", localBindPort = "9191", destinationPeer = null, meshGateway = null }]
    consul_ecs_config        = { service = null, proxy = { meshGateway = null }, transparentProxy = { excludeUIDs = null } }
    http_config              = null
    grpc_config              = { port = null }
  }

  # The stub has the configuration read as the containers read it.
  assert {
    condition     = jsondecode(jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value).service.tags == ["v1"]
    error_message = jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value
  }
  assert {
    condition     = module.task.task_definition.tags["team"] == "shop" && !contains(keys(module.task.task_definition.tags), "owner")
    error_message = "a tag without a value"
  }
}

run "family_that_is_not_a_valid_service_name" {
  command = plan

  variables {
    family = "-web"
  }

  expect_failures = [var.consul_service_name]
}

run "volume_of_the_mesh" {
  command = plan

  variables {
    volumes = [{ name = "consul_data", efs_volume_configuration = { file_system_id = "fs-1" } }]
  }

  expect_failures = [var.volumes]
}

run "volume_of_the_mesh_without_settings" {
  command = plan

  variables {
    volumes = [{ name = "consul_data", host_path = null }]
  }

  assert {
    condition     = toset(module.task.task_definition.volume[*].name) == toset(["consul_data"])
    error_message = "one volume is wanted"
  }
}

run "two_volumes_of_one_name" {
  command = plan

  variables {
    volumes = [{ name = "data" }, { name = "data" }]
  }

  expect_failures = [var.volumes]
}

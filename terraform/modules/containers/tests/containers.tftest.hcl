# Without any provider: what ECS adds to a definition.
run "defaults_of_ecs_are_filled_in" {
  command = plan

  variables {
    container_definitions = [
      { name = "web", image = "web:1", healthCheck = { command = ["CMD", "/check"], interval = null }, restartPolicy = { enabled = true }, portMappings = [{ containerPort = 8080, name = null }] },
      { name = "router", image = "router:1", firelensConfiguration = { type = "fluentbit" }, linuxParameters = { capabilities = { drop = ["ALL"] } }, user = null },
    ]
  }

  assert {
    condition = jsonencode(output.container_definitions) == jsonencode([
      {
        name        = "web", image = "web:1", portMappings = [{ containerPort = 8080, protocol = "tcp" }]
        healthCheck = { command = ["CMD", "/check"], interval = 30, timeout = 5, retries = 3 }, restartPolicy = { enabled = true, restartAttemptPeriod = 300 }
      },
      { name = "router", image = "router:1", firelensConfiguration = { type = "fluentbit" }, linuxParameters = { capabilities = { add = [], drop = ["ALL"] } }, user = "0" },
    ])
    error_message = jsonencode(output.container_definitions)
  }
}

run "what_is_given_is_kept" {
  command = plan

  variables {
    container_definitions = [
      { name = "web", image = "web:1", healthCheck = { command = ["CMD", "/check"], interval = 5, timeout = 2, retries = 1 }, restartPolicy = { enabled = true, restartAttemptPeriod = 60 }, portMappings = [{ containerPort = 53, protocol = "udp" }, { containerPortRange = "9000-9010" }] },
      { name = "other", image = "other:1", user = "1000", healthCheck = null, restartPolicy = null, portMappings = [], linuxParameters = { initProcessEnabled = true } },
    ]
  }

  assert {
    condition = jsonencode(output.container_definitions) == jsonencode([
      var.container_definitions[0],
      { name = "other", image = "other:1", user = "1000", portMappings = [], linuxParameters = { initProcessEnabled = true } },
    ])
    error_message = jsonencode(output.container_definitions)
  }
}

# Tasks with a Consul client agent, as with consul-ecs 0.6.
provider "aws" {
  region = "us-east-1"
}

variables {
  consul_ecs_image = "registry.example.com/consul-ecs:1.0.0-beta.1"
  generation       = "agent"
  family           = "web"
  port             = 8080
  retry_join       = ["10.0.0.4", "10.0.0.5"]
  container_definitions = [
    { name = "web", image = "web:1", entryPoint = ["/web"], healthCheck = { command = ["CMD", "/web", "check"] } },
  ]
}

run "without_acls_and_tls" {
  command = plan

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[*].name == ["web", "consul-ecs-install", "consul-client", "consul-ecs-mesh-init", "sidecar-proxy", "consul-ecs-health-sync"]
    error_message = join(", ", jsondecode(module.task.task_definition.container_definitions)[*].name)
  }
  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[2].entryPoint == ["/consul/consul-ecs", "client-entrypoint"]
    error_message = "the agent must run below client-entrypoint"
  }
  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[2].command == ["-stop-timeout", "45s", "-retry-join", "10.0.0.4", "-retry-join", "10.0.0.5", "-datacenter", "dc1"]
    error_message = join(" ", jsondecode(module.task.task_definition.container_definitions)[2].command)
  }
  assert {
    condition = jsondecode(jsondecode(module.task.task_definition.container_definitions)[3].environment[0].value) == {
      bootstrapDir         = "/consul"
      consulLogin          = {}
      healthSyncContainers = ["web"]
      proxy                = { publicListenerPort = 20000, upstreams = [] }
      service              = { name = "web", port = 8080, tags = [], meta = {} }
    }
    error_message = jsondecode(module.task.task_definition.container_definitions)[3].environment[0].value
  }
  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[0].entryPoint == ["/consul/consul-ecs", "app-entrypoint", "-await-proxy", "127.0.0.1:20000", "/web"]
    error_message = "the application must wait for the proxy's listener"
  }
}

run "secrets_are_the_agents_alone" {
  command = plan

  variables {
    acls                      = true
    tls                       = true
    consul_http_addr          = "https://10.0.0.4:8501"
    consul_server_ca_cert_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:rpc-AbCdEf"
    consul_https_ca_cert_arn  = "arn:aws:secretsmanager:us-east-1:123456789012:secret:https-AbCdEf"
    gossip_key_secret_arn     = "arn:aws:secretsmanager:us-east-1:123456789012:secret:gossip-AbCdEf"
    audit_logging             = true
  }

  assert {
    condition     = [for c in jsondecode(module.task.task_definition.container_definitions) : [for s in try(c.secrets, []) : s.name]] == [[], [], ["CONSUL_CACERT_PEM", "CONSUL_HTTPS_CACERT_PEM", "CONSUL_GOSSIP_ENCRYPTION_KEY"], [], [], []]
    error_message = module.task.task_definition.container_definitions
  }
  assert {
    condition = [for c in [jsondecode(jsondecode(module.task.task_definition.container_definitions)[3].environment[0].value)] : [c.consulHTTPAddr, c.consulCACertFile, c.consulLogin.enabled]] == [
      ["https://10.0.0.4:8501", "/consul/consul-https-ca-cert.pem", true],
    ]
    error_message = jsondecode(module.task.task_definition.container_definitions)[3].environment[0].value
  }
  assert {
    condition     = contains(jsondecode(module.task.task_definition.container_definitions)[2].command, "-audit-logging")
    error_message = "audit logging is off"
  }
}

run "checks_of_consul_turn_syncing_off" {
  command = plan

  variables {
    checks = [{ checkId = "http", name = "http", http = "http://127.0.0.1:8080/", interval = "10s" }]
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[*].name == ["web", "consul-ecs-install", "consul-client", "consul-ecs-mesh-init", "sidecar-proxy"]
    error_message = "without a login and synced containers there is no health-sync"
  }
  assert {
    condition     = jsondecode(jsondecode(module.task.task_definition.container_definitions)[3].environment[0].value).service.checks[0].checkId == "http"
    error_message = "the check is lost"
  }
}

run "needs_of_an_agent" {
  command = plan

  variables {
    retry_join               = []
    acls                     = true
    tls                      = true
    checks                   = [{ port = 1 }]
    requires_compatibilities = ["EC2"]
    enable_transparent_proxy = true
  }

  expect_failures = [var.retry_join, var.consul_http_addr, var.consul_server_ca_cert_arn, var.checks, var.enable_transparent_proxy]
}

run "address_of_the_servers_without_acls" {
  command = plan

  variables {
    consul_http_addr = "http://10.0.0.4:8500"
  }

  assert {
    condition     = jsondecode(jsondecode(module.task.task_definition.container_definitions)[3].environment[0].value).consulHTTPAddr == "http://10.0.0.4:8500"
    error_message = "health-sync and the agent ask the servers at the end, with a login and without"
  }
}

run "role_path_without_the_last_slash" {
  variables {
    iam_role_path = "/test"
  }

  assert {
    condition     = output.task_role_arn == "arn:aws:iam::123456789012:role/test/web-task"
    error_message = output.task_role_arn
  }
}

run "audit_logging_without_acls" {
  command = plan

  variables {
    audit_logging = true
  }

  expect_failures = [var.audit_logging]
}

run "other_ports_on_ec2" {
  command = plan

  variables {
    requires_compatibilities           = ["EC2"]
    envoy_public_listener_port         = 21000
    application_shutdown_delay_seconds = 5
    consul_agent_configuration         = "log_level = \"warn\""
    consul_datacenter                  = "east"
    consul_primary_datacenter          = "west"
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[4].healthCheck.command[3] == "127.0.0.1:21000"
    error_message = "the proxy's health check asks another port"
  }
  assert {
    condition     = contains(jsondecode(module.task.task_definition.container_definitions)[2].environment, { name = "CONSUL_AGENT_CONFIGURATION", value = "log_level = \"warn\"" })
    error_message = "the agent's HCL is lost"
  }
}

# A task without an agent, as most are. The stub refuses what ECS would refuse.
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

run "defaults_plan" {
  command = plan

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[*].name == ["web", "consul-ecs-mesh-init", "sidecar-proxy", "consul-ecs-health-sync"]
    error_message = "containers: ${join(", ", jsondecode(module.task.task_definition.container_definitions)[*].name)}"
  }
  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[*].essential == [true, false, true, false]
    error_message = "essential is not as admit has it"
  }
  assert {
    condition = jsondecode(jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value) == {
      bootstrapDir         = "/consul"
      consulLogin          = {}
      consulServers        = { hosts = "consul.example.com", skipServerWatch = false, defaults = { tls = false }, http = { port = 8500, https = false }, grpc = { port = 8502 } }
      healthSyncContainers = ["web"]
      proxy                = { publicListenerPort = 20000, healthCheckPort = 22000, mode = "direct", upstreams = [] }
      service              = { name = "web", port = 8080, tags = [], meta = {} }
      transparentProxy     = { enabled = false }
    }
    error_message = jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value
  }
  assert {
    condition = module.task.task_definition.tags == tomap({
      "consul.hashicorp.com/mesh"           = "true"
      "consul.hashicorp.com/service-name"   = "web"
      "consul.hashicorp.com/module"         = "mesh-task"
      "consul.hashicorp.com/module-version" = "1.0.0-beta.1"
    })
    error_message = "tags: ${jsonencode(module.task.task_definition.tags)}"
  }
  assert {
    condition     = module.task.task_definition.network_mode == "awsvpc"
    error_message = "network mode ${module.task.task_definition.network_mode}"
  }
}

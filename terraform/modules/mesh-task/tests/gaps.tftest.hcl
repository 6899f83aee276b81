# Settings of single containers and of the task that earlier modules do not have.
provider "aws" {
  region = "us-east-1"
}

variables {
  consul_ecs_image    = "registry.example.com/consul-ecs:1.0.0-beta.1"
  family              = "web"
  port                = 8080
  consul_server_hosts = "consul.example.com"
  container_definitions = [
    { name = "web", image = "web:1", entryPoint = ["/web"], stopTimeout = 60, logConfiguration = { logDriver = "awsfirelens", options = { Name = "stdout" } } },
    { name = "router", image = "fluent-bit:1", essential = true, firelensConfiguration = { type = "fluentbit" } },
  ]
}

run "settings_of_sidecars" {
  command = plan

  variables {
    sidecars = {
      all = {
        readonly_root_filesystem = true
        drop_capabilities        = ["ALL"]
        environment              = [{ name = "ALL", value = "1" }]
        docker_labels            = { team = "shop" }
        cpu                      = 10
      }
      mesh_init = { user = "5996", start_timeout = 60, image = "example/consul-ecs:1" }
      proxy = {
        cpu                = 64
        memory             = 128
        memory_reservation = 64
        stop_timeout       = 110
        health_check       = { interval = 10, start_period = 30 }
        environment        = [{ name = "PROXY", value = "1" }]
        secrets            = [{ name = "KEY", valueFrom = "arn:aws:ssm:us-east-1:123456789012:parameter/key" }]
      }
      health_sync = {
        restart_policy    = { restart_attempt_period = 60, ignored_exit_codes = [0] }
        log_configuration = { log_driver = "awslogs", options = { "awslogs-group" = "/ecs/sync", "awslogs-region" = "us-east-1", "awslogs-stream-prefix" = "sync" } }
      }
    }
  }

  assert {
    condition = [for c in slice(jsondecode(module.task.task_definition.container_definitions), 2, 5) : [c.readonlyRootFilesystem, c.linuxParameters.capabilities, c.cpu, c.dockerLabels.team]] == [
      [true, { add = [], drop = ["ALL"] }, 10, "shop"], [true, { add = [], drop = ["ALL"] }, 64, "shop"], [true, { add = [], drop = ["ALL"] }, 10, "shop"],
    ]
    error_message = module.task.task_definition.container_definitions
  }
  assert {
    condition     = [for c in [jsondecode(module.task.task_definition.container_definitions)[2]] : [c.user, c.startTimeout, c.image]] == [["5996", 60, "example/consul-ecs:1"]]
    error_message = module.task.task_definition.container_definitions
  }
  assert {
    condition = [for c in [jsondecode(module.task.task_definition.container_definitions)[3]] : [c.memory, c.memoryReservation, c.stopTimeout, c.healthCheck.interval, c.healthCheck.startPeriod, c.healthCheck.retries, c.environment[*].name, c.secrets[*].name]] == [
      [128, 64, 110, 10, 30, 10, ["CONSUL_ECS_IGNORE_CONTAINERS", "ALL", "PROXY"], ["KEY"]],
    ]
    error_message = module.task.task_definition.container_definitions
  }
  assert {
    condition = [for c in [jsondecode(module.task.task_definition.container_definitions)[4]] : [c.restartPolicy, c.logConfiguration.options["awslogs-group"], c.stopTimeout]] == [
      [{ enabled = true, ignoredExitCodes = [0], restartAttemptPeriod = 60 }, "/ecs/sync", 75],
    ]
    error_message = module.task.task_definition.container_definitions
  }
}

run "firelens" {
  command = plan

  assert {
    condition     = [for c in jsondecode(module.task.task_definition.container_definitions) : try(c.logConfiguration.logDriver, "")] == ["awsfirelens", "", "awsfirelens", "awsfirelens", "awsfirelens"]
    error_message = "the sidecars must log where the application does"
  }
  assert {
    condition     = !can(jsondecode(module.task.task_definition.container_definitions)[1].dependsOn) && !can(jsondecode(module.task.task_definition.container_definitions)[1].entryPoint)
    error_message = "a log router must not wait for what logs through it"
  }
}

run "arm64_on_fargate_with_storage" {
  command = plan

  variables {
    requires_compatibilities = ["FARGATE"]
    runtime_platform         = { cpu_architecture = "ARM64" }
    ephemeral_storage        = 50
    skip_destroy             = true
  }

  assert {
    condition     = module.task.task_definition.runtime_platform[0].cpu_architecture == "ARM64" && module.task.task_definition.ephemeral_storage[0].size_in_gib == 50
    error_message = "platform or storage is missing"
  }
}

run "placement_on_ec2" {
  command = plan

  variables {
    requires_compatibilities = ["EC2"]
    runtime_platform         = { cpu_architecture = "ARM64" }
    placement_constraints    = [{ type = "memberOf", expression = "attribute:ecs.instance-type =~ m7g.*" }]
  }

  assert {
    condition     = toset(module.task.task_definition.placement_constraints[*].expression) == toset(["attribute:ecs.instance-type =~ m7g.*", "attribute:ecs.cpu-architecture == arm64"])
    error_message = "placement constraints"
  }
}

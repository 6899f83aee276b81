# Gateways of all kinds, with and without a load balancer.
provider "aws" {
  region = "us-east-1"
}

variables {
  consul_ecs_image    = "registry.example.com/consul-ecs:1.0.0-beta.1"
  family              = "edge"
  kind                = "mesh-gateway"
  ecs_cluster_arn     = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  subnets             = ["subnet-1"]
  consul_server_hosts = "consul.example.com"
}

run "defaults_plan" {
  command = plan

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[*].name == ["consul-ecs-mesh-init", "sidecar-proxy", "consul-ecs-health-sync"]
    error_message = module.task.task_definition.container_definitions
  }
  assert {
    condition     = [for c in [jsondecode(module.task.task_definition.container_definitions)[1]] : [c.essential, c.portMappings, c.healthCheck.command[3]]] == [[true, [{ containerPort = 8443, protocol = "tcp" }], "127.0.0.1:22000"]]
    error_message = module.task.task_definition.container_definitions
  }
  assert {
    condition = jsondecode(jsondecode(module.task.task_definition.container_definitions)[0].environment[0].value) == {
      bootstrapDir     = "/consul"
      consulLogin      = {}
      consulServers    = { hosts = "consul.example.com", skipServerWatch = false, defaults = { tls = false }, http = { port = 8500, https = false }, grpc = { port = 8502 } }
      transparentProxy = { enabled = false }
      gateway = {
        kind       = "mesh-gateway", name = "edge", tags = [], meta = {}, healthCheckPort = 22000, proxy = { mode = "direct" }
        lanAddress = { address = "", port = 8443 }, wanAddress = { address = "", port = 8443 }
      }
    }
    error_message = jsondecode(module.task.task_definition.container_definitions)[0].environment[0].value
  }
  assert {
    condition     = aws_ecs_service.this.name == "edge" && aws_ecs_service.this.desired_count == 1 && aws_ecs_service.this.launch_type == "FARGATE" && aws_ecs_service.this.propagate_tags == "TASK_DEFINITION"
    error_message = "the service is another"
  }
  assert {
    condition     = length(aws_security_group.this) + length(aws_lb.this) == 0 && output.lb_security_group_id == null && aws_ecs_service.this.health_check_grace_period_seconds == null
    error_message = "nothing of a load balancer is wanted"
  }
}

run "api_gateway_behind_a_load_balancer_of_the_user" {
  command = plan

  variables {
    kind                        = "api-gateway"
    lan_port                    = 8080
    custom_load_balancer_config = [{ target_group_arn = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/a/1", container_name = "sidecar-proxy", container_port = 8080 }]
    capacity_provider_strategy  = [{ capacity_provider = "FARGATE_SPOT", weight = 1 }]
    deployment_circuit_breaker  = {}
    service_tags                = { team = "edge" }
    enable_execute_command      = false
    security_groups             = ["sg-1"]
    assign_public_ip            = true
    runtime_platform            = { cpu_architecture = "ARM64" }
  }

  assert {
    condition     = [for l in aws_ecs_service.this.load_balancer : "${l.container_name}:${l.container_port}"] == ["sidecar-proxy:8080"]
    error_message = "the target group is lost"
  }
  assert {
    condition     = [for p in aws_ecs_service.this.capacity_provider_strategy : p.capacity_provider] == ["FARGATE_SPOT"]
    error_message = "the capacity provider is lost"
  }
  assert {
    condition     = aws_ecs_service.this.deployment_circuit_breaker[0].rollback && aws_ecs_service.this.tags["team"] == "edge"
    error_message = "circuit breaker or tags"
  }
  assert {
    condition     = !aws_ecs_service.this.enable_execute_command && toset(aws_ecs_service.this.network_configuration[0].security_groups) == toset(["sg-1"])
    error_message = "service"
  }
}

run "load_balancer" {
  variables {
    lb_enabled                  = true
    lb_vpc_id                   = "vpc-1"
    lb_subnets                  = ["subnet-1", "subnet-2"]
    lb_ingress_rule_cidr_blocks = ["192.0.2.0/24", "2001:db8::/32"]
    lan_port                    = 8444
    wan_port                    = 443
    consul_service_name         = "a_gateway_with_a_very_long_name_for_a_load_balancer"
  }

  assert {
    condition     = aws_lb.this[0].name == aws_lb_target_group.this[0].name && length(aws_lb.this[0].name) == 32 && startswith(aws_lb.this[0].name, "a-gateway-with-a-very-l-")
    error_message = "name ${aws_lb.this[0].name}"
  }
  assert {
    condition     = aws_lb.this[0].load_balancer_type == "network" && !aws_lb.this[0].internal
    error_message = "another load balancer"
  }
  assert {
    condition     = aws_lb_listener.this[0].port == 443 && aws_lb_target_group.this[0].port == 8444 && aws_lb_target_group.this[0].deregistration_delay == "120"
    error_message = "listener or target group"
  }
  assert {
    condition     = [for l in aws_ecs_service.this.load_balancer : "${l.container_name}:${l.container_port}"] == ["sidecar-proxy:8444"] && aws_ecs_service.this.health_check_grace_period_seconds == 180
    error_message = "the service has no load balancer, or its tasks end before the gateway has started"
  }
  assert {
    condition     = [for r in aws_vpc_security_group_ingress_rule.clients : [coalesce(r.cidr_ipv4, "none"), coalesce(r.cidr_ipv6, "none")]] == [["192.0.2.0/24", "none"], ["none", "2001:db8::/32"]]
    error_message = "clients are not admitted"
  }
  # The subnets may be of another block than the VPC's first.
  assert {
    condition     = [for r in aws_vpc_security_group_ingress_rule.health_checks : "${r.cidr_ipv4} ${r.from_port}"] == ["10.0.1.0/24 8444", "10.0.2.0/24 8444"]
    error_message = "health checks are not admitted"
  }
  assert {
    condition     = toset(aws_vpc_security_group_ingress_rule.clients[*].from_port) == toset([8444])
    error_message = "connections arrive on the port of the tasks"
  }
  assert {
    condition     = contains(aws_ecs_service.this.network_configuration[0].security_groups, output.lb_security_group_id)
    error_message = "the tasks are not in the group"
  }
  assert {
    condition     = output.wan_address == aws_lb.this[0].dns_name && output.wan_port == 443
    error_message = "wan address ${output.wan_address}:${output.wan_port}"
  }
  assert {
    condition     = jsondecode(output.container_definitions[0].environment[0].value).gateway.wanAddress == { address = aws_lb.this[0].dns_name, port = 443 }
    error_message = "the gateway announces another address"
  }
}

# EC2 refuses two equal rules.
run "clients_in_a_subnet_of_the_load_balancer" {
  variables {
    lb_enabled                  = true
    lb_vpc_id                   = "vpc-1"
    lb_subnets                  = ["subnet-1", "subnet-2"]
    lb_ingress_rule_cidr_blocks = ["10.0.2.0/24", "192.0.2.0/24"]
    consul_service_name         = "duplicate"
  }

  assert {
    condition     = aws_vpc_security_group_ingress_rule.clients[0].cidr_ipv4 == "10.0.2.0/24" && aws_vpc_security_group_ingress_rule.health_checks[0].cidr_ipv4 == "10.0.1.0/24" && aws_vpc_security_group_ingress_rule.health_checks[1].cidr_ipv4 == "10.0.2.0/32"
    error_message = "rules of clients ${jsonencode(aws_vpc_security_group_ingress_rule.clients[*].cidr_ipv4)}, of health checks ${jsonencode(aws_vpc_security_group_ingress_rule.health_checks[*].cidr_ipv4)}"
  }
}

run "given_security_group" {
  command = plan

  variables {
    lb_enabled                  = true
    lb_vpc_id                   = "vpc-1"
    lb_subnets                  = ["subnet-1"]
    lb_create_security_group    = false
    lb_modify_security_group    = true
    lb_modify_security_group_id = "sg-1"
  }

  assert {
    condition     = [for r in aws_vpc_security_group_ingress_rule.clients : "${r.security_group_id} ${r.cidr_ipv4} ${r.from_port}"] == ["sg-1 0.0.0.0/0 8443"] && length(aws_security_group.this) == 0
    error_message = "the given group is not modified"
  }
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.health_checks) == 0
    error_message = "all addresses are admitted, and so are health checks"
  }
}

run "load_balancer_of_an_internal_gateway" {
  command = plan

  variables {
    family     = "internal-mesh_gateway"
    lb_enabled = true
    lb_vpc_id  = "vpc-1"
    lb_subnets = ["subnet-1"]
  }

  assert {
    condition     = startswith(aws_lb.this[0].name, "int-mesh-gateway-") && aws_ecs_service.this.name == "internal-mesh_gateway"
    error_message = "AWS refuses names that begin with internal-: ${aws_lb.this[0].name}"
  }
}

run "load_balancer_of_a_gateway_that_is_internal_twice" {
  command = plan

  variables {
    family     = "internal-internal"
    lb_enabled = true
    lb_vpc_id  = "vpc-1"
    lb_subnets = ["subnet-1"]
  }

  assert {
    condition     = startswith(aws_lb.this[0].name, "int-internal-")
    error_message = aws_lb.this[0].name
  }
}

run "load_balancer_of_a_gateway_with_the_longest_name" {
  command = plan

  variables {
    consul_service_name = join("", [for n in range(255) : "g"])
    lb_enabled          = true
    lb_vpc_id           = "vpc-1"
    lb_subnets          = ["subnet-1"]
  }

  assert {
    condition     = length(aws_lb.this[0].name) == 32 && length(aws_security_group.this[0].description) <= 255
    error_message = aws_security_group.this[0].description
  }
}

run "load_balancer_of_the_second_gateway_of_a_name" {
  command = plan

  variables {
    lb_enabled = true
    lb_name    = "edge-west"
    lb_vpc_id  = "vpc-1"
    lb_subnets = ["subnet-1"]
  }

  assert {
    condition     = [aws_lb.this[0].name, aws_lb_target_group.this[0].name, aws_security_group.this[0].name] == ["edge-west", "edge-west", "edge-west"] && aws_ecs_service.this.name == "edge"
    error_message = aws_lb.this[0].name
  }
}

run "target_group_of_a_configuration_for_consul_dataplane" {
  command = plan

  variables {
    custom_load_balancer_config = [{ target_group_arn = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/a/1", container_name = "consul-dataplane", container_port = 8443 }]
    tags                        = { team = "edge", owner = null }
    sidecars                    = { all = null, proxy = { port_mappings = null, mount_points = null } }
  }

  assert {
    condition     = [for l in aws_ecs_service.this.load_balancer : "${l.container_name}:${l.container_port}"] == ["sidecar-proxy:8443"]
    error_message = "ECS has no such container"
  }
  assert {
    condition     = module.task.task_definition.tags["team"] == "edge" && !contains(keys(module.task.task_definition.tags), "owner")
    error_message = "a tag without a value"
  }
}

run "wan_federation" {
  command = plan

  variables {
    enable_mesh_gateway_wan_federation = true
    tls                                = true
    wan_address                        = "gateway.example.com"
    wan_port                           = 443
    gateway_count                      = 2
    consul_partition                   = "p"
    consul_service_meta                = { team = "mesh" }
  }

  assert {
    condition = [for g in [jsondecode(jsondecode(module.task.task_definition.container_definitions)[0].environment[0].value).gateway] : [g.meta, g.wanAddress, g.namespace, g.partition]] == [
      [{ team = "mesh", consul-wan-federation = "1" }, { address = "gateway.example.com", port = 443 }, "default", "p"],
    ]
    error_message = jsondecode(module.task.task_definition.container_definitions)[0].environment[0].value
  }
  assert {
    condition     = aws_ecs_service.this.desired_count == 2
    error_message = "two gateways are wanted"
  }
}

run "terminating_gateway_with_certificates" {
  command = plan

  variables {
    kind                        = "terminating-gateway"
    acls                        = true
    consul_dataplane_image      = "hashicorp/consul-dataplane:1.9.0"
    extra_container_definitions = [{ name = "extra", image = "extra:1", essential = false, dependsOn = null }]
    volumes = [
      { name = "certs", host_path = "/certs", efs_volume_configuration = { file_system_id = "fs-1" } },
      { name = "state", host_path = "/state", read_only = false },
      { name = "unmounted" },
    ]
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[*].name == ["extra", "consul-ecs-mesh-init", "consul-dataplane", "consul-ecs-health-sync"]
    error_message = module.task.task_definition.container_definitions
  }
  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[0] == { name = "extra", image = "extra:1", essential = false }
    error_message = "extra containers stay as they are"
  }
  assert {
    condition = jsondecode(module.task.task_definition.container_definitions)[2].mountPoints == [
      { sourceVolume = "consul_data", containerPath = "/consul", readOnly = true },
      { sourceVolume = "certs", containerPath = "/certs", readOnly = true },
      { sourceVolume = "state", containerPath = "/state" },
    ]
    error_message = jsonencode(jsondecode(module.task.task_definition.container_definitions)[2].mountPoints)
  }
  assert {
    condition     = alltrue([for v in module.task.task_definition.volume : coalesce(v.host_path, "none") == "none"]) && length(module.task.task_definition.volume) == 4
    error_message = "the path is that in the container"
  }
  assert {
    condition     = !can(jsondecode(jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value).gateway.lanAddress)
    error_message = "only a mesh gateway has addresses"
  }
}

run "mesh_gateway_with_an_agent" {
  command = plan

  variables {
    generation          = "agent"
    consul_server_hosts = ""
    retry_join          = ["10.0.0.4"]
    lan_port            = 8555
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[*].name == ["consul-ecs-install", "consul-client", "consul-ecs-mesh-init", "sidecar-proxy"]
    error_message = "without a login there is no health-sync"
  }
  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[3].healthCheck.command[3] == "127.0.0.1:8555"
    error_message = "the gateway's port must be asked"
  }
}

run "settings_of_the_task_and_its_containers" {
  command = plan

  variables {
    launch_type                = "EC2"
    requires_compatibilities   = ["EC2"]
    runtime_platform           = { cpu_architecture = "ARM64" }
    placement_constraints      = [{ type = "memberOf", expression = "attribute:ecs.instance-type =~ m7g.*" }]
    ordered_placement_strategy = [{ type = "spread", field = "attribute:ecs.availability-zone" }]
    skip_destroy               = true
    permissions_boundary       = "arn:aws:iam::123456789012:policy/boundary"
    enable_execute_command     = false
    extra_container_definitions = [
      { name = "router", image = "fluent-bit:1", essential = true, firelensConfiguration = { type = "fluentbit" } },
    ]
    log_configuration = { logDriver = "awsfirelens", options = { Name = "stdout" } }
    sidecars = {
      all   = { readonly_root_filesystem = true, drop_capabilities = ["ALL"], environment = [{ name = "ALL", value = "1" }] }
      proxy = { cpu = 64, memory = 256, memory_reservation = 128, stop_timeout = 90, secrets = [{ name = "KEY", valueFrom = "/edge/key" }] }
      health_sync = {
        user              = "5996", start_timeout = 30, restart_policy = { restart_attempt_period = 60 }
        log_configuration = { log_driver = "json-file" }
      }
    }
  }

  assert {
    condition     = toset(module.task.task_definition.placement_constraints[*].expression) == toset(["attribute:ecs.instance-type =~ m7g.*", "attribute:ecs.cpu-architecture == arm64"]) && module.task.task_definition.skip_destroy
    error_message = "placement of the task definition"
  }
  assert {
    condition     = aws_ecs_service.this.ordered_placement_strategy[0].field == "attribute:ecs.availability-zone"
    error_message = "placement of the service"
  }
  assert {
    condition = [for c in jsondecode(module.task.task_definition.container_definitions) : [c.name, try(c.readonlyRootFilesystem, false), try(c.linuxParameters.capabilities.drop, []), try(c.logConfiguration.logDriver, "")]] == [
      ["router", false, [], ""],
      ["consul-ecs-mesh-init", true, ["ALL"], "awsfirelens"],
      ["sidecar-proxy", true, ["ALL"], "awsfirelens"],
      ["consul-ecs-health-sync", true, ["ALL"], "json-file"],
    ]
    error_message = module.task.task_definition.container_definitions
  }
  assert {
    condition     = [for c in [jsondecode(module.task.task_definition.container_definitions)[2]] : [c.cpu, c.memory, c.memoryReservation, c.stopTimeout, c.secrets, contains(c.environment[*].name, "ALL")]] == [[64, 256, 128, 90, [{ name = "KEY", valueFrom = "/edge/key" }], true]]
    error_message = module.task.task_definition.container_definitions
  }
  assert {
    condition     = [for c in [jsondecode(module.task.task_definition.container_definitions)[3]] : [c.user, c.startTimeout, c.restartPolicy]] == [["5996", 30, { enabled = true, restartAttemptPeriod = 60 }]]
    error_message = module.task.task_definition.container_definitions
  }
}

run "storage_on_fargate" {
  command = plan

  variables {
    ephemeral_storage = 30
  }

  assert {
    condition     = module.task.task_definition.ephemeral_storage[0].size_in_gib == 30
    error_message = "the storage is lost"
  }
}

run "volumes_of_every_kind" {
  command = plan

  variables {
    launch_type              = "EC2"
    requires_compatibilities = ["EC2"]
    volumes = [
      { name = "bare" },
      { name = "docker", docker_volume_configuration = {} },
      { name = "docker-full", docker_volume_configuration = { scope = "shared", autoprovision = true, driver = "local", driver_opts = { type = "nfs" }, labels = { a = "b" } } },
      { name = "efs", efs_volume_configuration = { file_system_id = "fs-1" } },
      { name = "fsx", host_path = "/share", fsx_windows_file_server_volume_configuration = { file_system_id = "fs-1", root_directory = "/", authorization_config = { credentials_parameter = "arn:aws:secretsmanager:us-east-1:123456789012:secret:fsx-AbCdEf", domain = "example.com" } } },
    ]
  }

  assert {
    condition     = toset(module.task.task_definition.volume[*].name) == toset(["bare", "docker", "docker-full", "efs", "fsx", "consul_data"])
    error_message = "volumes are missing"
  }
  assert {
    condition = { for v in module.task.task_definition.volume : v.name => [v.docker_volume_configuration[0].driver, v.docker_volume_configuration[0].autoprovision] if v.name == "docker-full" } == {
      docker-full = ["local", true]
    }
    error_message = "the volume's settings are lost"
  }
  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[1].mountPoints == [{ sourceVolume = "consul_data", containerPath = "/consul", readOnly = true }, { sourceVolume = "fsx", containerPath = "/share", readOnly = true }]
    error_message = module.task.task_definition.container_definitions
  }
}

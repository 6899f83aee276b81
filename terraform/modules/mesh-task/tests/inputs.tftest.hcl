# The inputs that are refused, and those beside them that are not.
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

run "volumes_of_every_kind" {
  command = plan

  variables {
    volumes = [
      { name = "bare" },
      { name = "efs", efs_volume_configuration = { file_system_id = "fs-1", mount_target = null } },
      { name = "efs-full", efs_volume_configuration = { file_system_id = "fs-1", root_directory = "/", transit_encryption = "ENABLED", transit_encryption_port = 2999, authorization_config = { access_point_id = "fsap-1", iam = "ENABLED" } } },
    ]
  }

  assert {
    condition     = toset(module.task.task_definition.volume[*].name) == toset(["bare", "efs", "efs-full", "consul_data"])
    error_message = "volumes are missing"
  }
}


run "volumes_on_ec2" {
  command = plan

  variables {
    requires_compatibilities = ["EC2"]
    volumes = [
      { name = "host", host_path = "/data" },
      { name = "docker", docker_volume_configuration = {} },
      { name = "docker-full", docker_volume_configuration = { scope = "shared", autoprovision = true, driver = "local", driver_opts = { type = "nfs" }, labels = { a = "b" } } },
      { name = "fsx", fsx_windows_file_server_volume_configuration = { file_system_id = "fs-1", root_directory = "/", authorization_config = { credentials_parameter = "arn:aws:secretsmanager:us-east-1:123456789012:secret:fsx", domain = "example.com" } } },
    ]
  }
}


run "upstreams" {
  command = plan

  variables {
    upstreams = [{ destinationName = "api", localBindPort = 9191 }, { destinationName = "db", localBindPort = 9192, destinationPeer = "east", meshGateway = { mode = "local" } }]
  }

  assert {
    condition     = length(jsondecode(jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value).proxy.upstreams) == 2
    error_message = "both upstreams are wanted"
  }
}


run "readiness_port" {
  command = plan

  variables {
    envoy_readiness_port = 23000
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[2].healthCheck.command[3] == "127.0.0.1:23000"
    error_message = "the health check asks another port"
  }
}


run "service_name_lower" {
  command = plan

  variables {
    family = "Web"
  }

  assert {
    condition     = module.task.task_definition.tags["consul.hashicorp.com/service-name"] == "web"
    error_message = "the name is not in lower case"
  }
}


run "consul_ecs_config_complete" {
  command = plan

  variables {
    consul_ecs_config = {
      service          = { enableTagOverride = true, weights = { passing = 2, warning = 1 }, networkResilienceConfig = { outlierDetection = { interval = 10, maxFailures = 5, enforcingConsecutive5xx = 100, maxEjectionPercent = 50 } } }
      proxy            = { meshGateway = { mode = "local" }, expose = { checks = false, paths = [{ listenerPort = 21500, path = "/", localPathPort = 8080, protocol = "http" }] }, config = { a = "b" } }
      consulLogin      = { enabled = true, method = "mine", includeEntity = false, meta = { a = "b" }, region = "us-east-1", stsEndpoint = "https://sts.example.com", serverIdHeaderValue = "consul" }
      transparentProxy = { enabled = false }
    }
  }

  assert {
    condition     = jsondecode(jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value).consulLogin.method == "mine"
    error_message = "the method is not that of consul_ecs_config"
  }
}


run "http_and_grpc_config" {
  command = plan

  variables {
    tls         = true
    http_config = { port = 443, https = true, tls = true, tlsServerName = "a", caCertFile = "/a" }
    grpc_config = { port = 8503, tls = false }
  }

  assert {
    condition     = jsondecode(jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value).consulServers.http.port == 443 && jsondecode(jsondecode(module.task.task_definition.container_definitions)[1].environment[0].value).consulServers.grpc.tls == false
    error_message = "http_config or grpc_config is lost"
  }
}


run "partition_and_namespace" {
  command = plan

  variables {
    consul_partition = "p"
    consul_namespace = "n"
  }

  assert {
    condition     = module.task.task_definition.tags["consul.hashicorp.com/partition"] == "p" && module.task.task_definition.tags["consul.hashicorp.com/namespace"] == "n"
    error_message = "tags of partition and namespace are missing"
  }
}


run "transparent_proxy_on_ec2" {
  command = plan

  variables {
    requires_compatibilities = ["EC2"]
    enable_transparent_proxy = true
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[1].user == "0" && jsondecode(module.task.task_definition.container_definitions)[1].linuxParameters.capabilities.add == ["NET_ADMIN", "CHOWN", "DAC_OVERRIDE"]
    error_message = "mesh-init cannot redirect traffic"
  }
}


run "dns" {
  command = plan

  variables {
    requires_compatibilities = ["EC2"]
    enable_consul_dns        = true
    consul_dataplane_image   = "hashicorp/consul-dataplane:1.9.0"
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[2].name == "consul-dataplane"
    error_message = "without consul-dataplane there is no DNS server"
  }
}


run "everything_that_is_out_of_range_is_refused_at_once" {
  command = plan

  variables {
    consul_service_name        = "UPPER"
    envoy_public_listener_port = 65536
    iam_role_path              = ""
    upstreams                  = [{ destinationName = "api", localBindPort = 9191, port = 1 }]
    volumes                    = [{ host_path = "/data" }]
    http_config                = { x = 1 }
    grpc_config                = { https = true }
    consul_ecs_config          = { gateway = {} }
    consul_ecs_image           = "public.ecr.aws/hashicorp/consul-ecs:0.10.0"
    checks                     = [{ http = "http://127.0.0.1:8080/" }]
    port                       = 0
    consul_server_hosts        = ""
    generation                 = "agentless"
  }

  expect_failures = [
    var.consul_service_name,
    var.envoy_public_listener_port,
    var.iam_role_path,
    var.upstreams,
    var.volumes,
    var.http_config,
    var.grpc_config,
    var.consul_ecs_config,
    var.consul_ecs_image,
    var.checks,
    var.port,
    var.consul_server_hosts,
  ]
}

run "reserved_ports_and_incomplete_upstreams" {
  command = plan

  variables {
    envoy_public_listener_port = 19000
    iam_role_path              = "test"
    upstreams                  = [{ localBindPort = 9191 }]
    consul_partition           = "p"
    sidecars                   = { all = null, proxy = { memroy = 128 } }
    http_config                = "http"
    log_configuration          = { logdriver = "awslogs" }
    port                       = 80.5
    tags                       = { "aws:team" = "shop" }
  }

  expect_failures = [
    var.envoy_public_listener_port,
    var.iam_role_path,
    var.upstreams,
    var.consul_namespace,
    var.sidecars,
    var.http_config,
    var.log_configuration,
    var.port,
    var.tags,
  ]
}

run "ports_of_servers_and_upstreams_without_port" {
  command = plan

  variables {
    envoy_public_listener_port = 8503
    iam_role_path              = "/test"
    upstreams                  = [{ destinationName = "api" }]
    consul_namespace           = "n"
    volumes                    = [{ name = "efs", efs_volume_configuration = { root_directory = "/" } }]
  }

  expect_failures = [
    var.envoy_public_listener_port,
    var.iam_role_path,
    var.upstreams,
    var.consul_namespace,
    var.volumes,
  ]
}

run "role_path_with_a_space" {
  command = plan

  variables {
    iam_role_path = "/the mesh/"
  }

  expect_failures = [var.iam_role_path]
}

run "readiness_port_of_the_listener" {
  command = plan

  variables {
    envoy_readiness_port       = 20000
    envoy_public_listener_port = 20000
    iam_role_path              = "/"
  }

  expect_failures = [
    var.envoy_readiness_port,
    var.iam_role_path,
  ]
}

run "policies_for_given_roles_and_readiness_port_out_of_range" {
  command = plan

  variables {
    envoy_readiness_port               = 65536
    enable_execute_command             = true
    create_task_role                   = false
    task_role                          = { arn = "arn:aws:iam::123456789012:role/consul-ecs/mine" }
    additional_task_role_policies      = ["arn:aws:iam::123456789012:policy/more"]
    create_execution_role              = false
    execution_role                     = { arn = "arn:aws:iam::123456789012:role/consul-ecs/mine" }
    additional_execution_role_policies = ["arn:aws:iam::123456789012:policy/more"]
  }

  expect_failures = [
    var.enable_execute_command,
    var.envoy_readiness_port,
    var.additional_task_role_policies,
    var.additional_execution_role_policies,
  ]
}

run "no_roles_at_all_and_readiness_port_of_envoy" {
  command = plan

  variables {
    envoy_readiness_port  = 19000
    create_task_role      = false
    create_execution_role = false
  }

  expect_failures = [
    var.envoy_readiness_port,
    var.task_role,
    var.execution_role,
  ]
}

run "transparent_proxy_on_fargate" {
  command = plan

  variables {
    requires_compatibilities = ["FARGATE"]
    enable_transparent_proxy = true
  }

  expect_failures = [
    var.enable_transparent_proxy,
  ]
}

run "transparent_proxy_on_both_launch_types" {
  command = plan

  variables {
    enable_transparent_proxy = true
  }

  expect_failures = [
    var.enable_transparent_proxy,
  ]
}

run "dns_without_transparent_proxy" {
  command = plan

  variables {
    enable_consul_dns      = true
    consul_dataplane_image = "hashicorp/consul-dataplane:1.9.0"
  }

  expect_failures = [
    var.enable_consul_dns,
  ]
}

run "dns_without_dataplane" {
  command = plan

  variables {
    requires_compatibilities = ["EC2"]
    enable_consul_dns        = true
  }

  assert {
    condition     = jsondecode(module.task.task_definition.container_definitions)[2].name == "sidecar-proxy"
    error_message = "Envoy's container does not answer DNS"
  }
}

run "inputs_at_the_edges" {
  command = plan

  variables {
    envoy_public_listener_port = 21000
    iam_role_path              = "/test/"
    port                       = 0
    outbound_only              = true
  }
}

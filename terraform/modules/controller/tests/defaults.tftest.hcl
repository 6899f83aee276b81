# What a plan has with the required variables, in both generations.

variables {
  consul_ecs_image                  = "registry.example.com/consul-ecs:1.0.0-beta.1"
  name_prefix                       = "mesh"
  ecs_cluster_arn                   = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  subnets                           = ["subnet-1"]
  consul_server_hosts               = "consul.example.com"
  consul_bootstrap_token_secret_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:token-AbCdEf"
}

run "agentless" {
  command = plan

  assert {
    condition = jsondecode(aws_ecs_task_definition.this.container_definitions) == [{
      name      = "consul-ecs-controller"
      image     = "registry.example.com/consul-ecs:1.0.0-beta.1"
      essential = true
      command   = ["controller"]
      environment = [{
        name = "CONSUL_ECS_CONFIG_JSON"
        value = jsonencode({
          bootstrapDir = "/consul"
          consulServers = {
            defaults        = { tls = false, tlsServerName = "" }
            grpc            = { port = 8502 }
            hosts           = "consul.example.com"
            http            = { https = false, port = 8500 }
            skipServerWatch = false
          }
          controller = { iamRolePath = "/consul-ecs/", partitionsEnabled = false }
          logLevel   = "INFO"
        })
      }]
      secrets                = [{ name = "CONSUL_HTTP_TOKEN", valueFrom = var.consul_bootstrap_token_secret_arn }]
      readonlyRootFilesystem = true
      linuxParameters        = { initProcessEnabled = true, capabilities = { add = [], drop = ["ALL"] } }
    }]
    error_message = "The container differs."
  }

  assert {
    condition     = aws_ecs_task_definition.this.family == "mesh-consul-ecs-controller"
    error_message = "The family differs."
  }

  assert {
    condition     = aws_ecs_service.this.name == "consul-ecs-controller" && aws_ecs_service.this.launch_type == "FARGATE"
    error_message = "The service differs."
  }

  assert {
    condition     = aws_iam_role.execution.path == "/ecs/" && aws_iam_role.execution.name == "mesh-consul-ecs-controller-execution"
    error_message = "The execution role differs."
  }
}

run "agent" {
  command = plan

  variables {
    generation                = "agent"
    consul_server_hosts       = ""
    consul_server_http_addr   = "https://consul.example.com:8501"
    consul_server_ca_cert_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:ca-AbCdEf"
    consul_partitions_enabled = true
    consul_partition          = "ecs"
  }

  assert {
    condition = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].command == [
      "acl-controller", "-iam-role-path", "/consul-ecs/", "-log-level", "INFO", "-partitions-enabled", "-partition", "ecs",
    ]
    error_message = "The command differs."
  }

  assert {
    condition = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].environment == [
      { name = "CONSUL_HTTP_ADDR", value = "https://consul.example.com:8501" },
    ]
    error_message = "The environment differs."
  }

  assert {
    condition = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].secrets == [
      { name = "CONSUL_HTTP_TOKEN", valueFrom = var.consul_bootstrap_token_secret_arn },
      { name = "CONSUL_CACERT_PEM", valueFrom = var.consul_server_ca_cert_arn },
    ]
    error_message = "The secrets differ."
  }

  assert {
    condition     = aws_ecs_task_definition.this.family == "mesh-consul-acl-controller" && aws_ecs_service.this.name == "consul-acl-controller"
    error_message = "The names differ."
  }
}

run "tls_and_partition" {
  command = plan

  variables {
    tls                       = true
    tls_server_name           = "server.dc1.consul"
    skip_server_watch         = true
    consul_ca_cert_arn        = "arn:aws:secretsmanager:us-east-1:123456789012:secret:ca-AbCdEf"
    consul_grpc_ca_cert_arn   = "arn:aws:secretsmanager:us-east-1:123456789012:secret:grpc-AbCdEf"
    http_config               = { port = 443, tlsServerName = "https.example.com" }
    grpc_config               = { port = 8443 }
    consul_partitions_enabled = true
    consul_partition          = "ecs"
    iam_role_path             = "/mesh/"
    log_level                 = "DEBUG"
  }

  assert {
    condition = jsondecode(jsondecode(aws_ecs_task_definition.this.container_definitions)[0].environment[0].value) == {
      bootstrapDir = "/consul"
      consulServers = {
        defaults        = { tls = true, tlsServerName = "server.dc1.consul" }
        grpc            = { port = 8443 }
        hosts           = "consul.example.com"
        http            = { https = true, port = 443, tlsServerName = "https.example.com" }
        skipServerWatch = true
      }
      controller = { iamRolePath = "/mesh/", partition = "ecs", partitionsEnabled = true }
      logLevel   = "DEBUG"
    }
    error_message = "The configuration differs."
  }

  assert {
    condition = [for s in jsondecode(aws_ecs_task_definition.this.container_definitions)[0].secrets : s.name] == [
      "CONSUL_HTTP_TOKEN", "CONSUL_HTTPS_CACERT_PEM",
    ]
    error_message = "The secrets differ."
  }
}

run "nulls_are_defaults" {
  command = plan

  variables {
    generation                         = null
    consul_server_http_addr            = null
    consul_ca_cert_arn                 = null
    http_config                        = null
    grpc_config                        = null
    consul_partition                   = null
    iam_role_path                      = null
    log_configuration                  = null
    extra_container_definitions        = null
    requires_compatibilities           = null
    launch_type                        = null
    capacity_provider_strategy         = null
    security_groups                    = null
    additional_execution_role_policies = null
    environment                        = null
    secrets                            = null
    cpu                                = null
    memory                             = null
    tags                               = null
    metrics_port                       = null
  }

  assert {
    condition     = aws_ecs_task_definition.this.cpu == "256" && aws_ecs_task_definition.this.memory == "512"
    error_message = "The size differs."
  }
}

# Variables that a plan refuses.

variables {
  name_prefix                       = "mesh"
  consul_ecs_image                  = "consul-ecs:1"
  ecs_cluster_arn                   = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  subnets                           = ["subnet-1"]
  consul_server_hosts               = "consul.example.com"
  consul_bootstrap_token_secret_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:token-AbCdEf"
}

run "all_mistakes_at_once" {
  command = plan

  variables {
    name_prefix                       = "a-prefix-that-makes-role-names-too-long"
    generation                        = "new"
    consul_ecs_image                  = ""
    consul_bootstrap_token_secret_arn = "3f9c4f0e-0000-0000-0000-000000000000"
    subnets                           = []
    http_config                       = { host = "x" }
    grpc_config                       = { https = true }
    iam_role_path                     = "/"
    log_level                         = "loud"
    token_ttl                         = "1 day"
    metrics_port                      = 70000
    launch_type                       = "LAMBDA"
    log_configuration                 = { logdriver = "awslogs" }
    desired_count                     = -1
    tags                              = { "AWS:team" = "mesh" }
  }

  expect_failures = [
    var.name_prefix, var.generation, var.consul_ecs_image, var.consul_bootstrap_token_secret_arn, var.subnets, var.http_config,
    var.grpc_config, var.iam_role_path, var.log_level, var.token_ttl, var.metrics_port, var.launch_type, var.log_configuration,
    var.desired_count, var.tags,
  ]
}

run "fractions_and_long_paths" {
  command = plan

  variables {
    metrics_port  = 1.5
    desired_count = 0.5
    iam_role_path = join("", ["/", join("", [for n in range(512) : "a"]), "/"])
  }

  expect_failures = [var.metrics_port, var.desired_count, var.iam_role_path]
}

run "tokens_of_less_than_a_minute" {
  command = plan

  variables {
    token_ttl = "0h59s"
  }

  expect_failures = [var.token_ttl]
}

run "tokens_of_more_than_a_day" {
  command = plan

  variables {
    token_ttl = "24h1s"
  }

  expect_failures = [var.token_ttl]
}

run "longest_tokens" {
  command = plan

  variables {
    token_ttl = "23h59m60s"
  }
}

run "path_without_a_slash_at_its_end" {
  command = plan

  variables {
    iam_role_path = "/mesh/services"
  }
}

run "longest_prefix" {
  command = plan

  variables {
    name_prefix = "a-prefix-of-thirty-two-characters"
  }

  expect_failures = [var.name_prefix]
}

run "agentless_needs_hosts" {
  command = plan

  variables {
    consul_server_hosts = ""
  }

  expect_failures = [var.consul_server_hosts]
}

run "agent_needs_an_address" {
  command = plan

  variables {
    generation = "agent"
  }

  expect_failures = [var.consul_server_http_addr]
}

run "partition_needs_a_name" {
  command = plan

  variables {
    consul_partitions_enabled = true
    consul_partition          = ""
  }

  expect_failures = [var.consul_partition]
}

run "container_name_is_taken" {
  command = plan

  variables {
    extra_container_definitions = [{ name = "consul-ecs-controller", image = "x" }]
  }

  expect_failures = [var.extra_container_definitions]
}

run "launch_type_is_compatible" {
  command = plan

  variables {
    requires_compatibilities = ["EC2"]
  }

  expect_failures = [var.requires_compatibilities]
}

run "variables_without_effect_are_named" {
  command = plan

  variables {
    region                  = "eu-west-1"
    consul_partition        = "ecs"
    consul_server_http_addr = "http://consul:8500"
  }

  expect_failures = [check.region, check.partition, check.generation]
}

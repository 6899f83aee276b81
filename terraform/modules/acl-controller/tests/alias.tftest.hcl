variables {
  consul_ecs_image                  = "registry.example.com/consul-ecs:1.0.0-beta.1"
  name_prefix                       = "mesh"
  ecs_cluster_arn                   = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  subnets                           = ["subnet-1"]
  consul_server_http_addr           = "http://consul.example.com:8500"
  consul_bootstrap_token_secret_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:token-AbCdEf"
}

run "is_the_controller_of_the_agent_generation" {
  command = apply

  assert {
    condition     = output.ecs_service_name == "consul-acl-controller"
    error_message = "The service differs."
  }

  assert {
    condition     = endswith(output.task_definition_arn, "task-definition/mesh-consul-acl-controller:1")
    error_message = "The task definition differs."
  }
}

run "settings_reach_the_controller" {
  command = plan

  variables {
    service_name               = "second-controller"
    requires_compatibilities   = ["EC2"]
    launch_type                = "EC2"
    placement_constraints      = [{ type = "memberOf", expression = "attribute:ecs.instance-type =~ m7g.*" }]
    ordered_placement_strategy = [{ type = "spread", field = "host" }]
    runtime_platform           = { cpu_architecture = "ARM64" }
    restart_policy             = { restart_attempt_period = 60 }
    start_timeout              = 30
    stop_timeout               = 60
    metrics_port               = 9102
    deployment_circuit_breaker = { enable = true, rollback = true }
    environment                = { HTTPS_PROXY = "http://proxy.example.com:3128" }
  }

  assert {
    condition     = output.ecs_service_name == "second-controller"
    error_message = "The service differs."
  }
}

run "is_the_controller_of_the_agent_generation" {
  command = apply

  variables {
    name_prefix                       = "mesh"
    consul_ecs_image                  = "consul-ecs:1"
    ecs_cluster_arn                   = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
    subnets                           = ["subnet-1"]
    consul_server_http_addr           = "http://consul.example.com:8500"
    consul_bootstrap_token_secret_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:token-AbCdEf"
  }

  assert {
    condition     = output.ecs_service_name == "consul-acl-controller"
    error_message = "The service differs."
  }

  assert {
    condition     = endswith(output.task_definition_arn, "task-definition/mesh-consul-acl-controller:1")
    error_message = "The task definition differs."
  }
}

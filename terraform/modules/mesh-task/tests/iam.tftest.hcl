# Roles: what Consul's auth method reads, and no more than the task needs.
provider "aws" {
  region = "us-east-1"
}

variables {
  consul_ecs_image    = "registry.example.com/consul-ecs:1.0.0-beta.1"
  family              = "web"
  consul_service_name = "shop"
  consul_namespace    = "n"
  consul_partition    = "p"
  port                = 8080
  consul_server_hosts = "consul.example.com"
  acls                = true
  tls                 = true
  consul_ca_cert_arn  = "arn:aws:secretsmanager:us-east-1:123456789012:secret:ca-AbCdEf"
  container_definitions = [
    { name = "web", image = "web:1", entryPoint = ["/web"], logConfiguration = { logDriver = "awslogs", options = { "awslogs-group" = "/ecs/web", "awslogs-region" = "us-east-1", "awslogs-stream-prefix" = "web" } } },
  ]
  sidecars                           = { mesh_init = { secrets = [{ name = "A", valueFrom = "arn:aws:ssm:us-east-1:123456789012:parameter/a" }] } }
  additional_task_role_policies      = ["arn:aws:iam::123456789012:policy/task"]
  additional_execution_role_policies = ["arn:aws:iam::123456789012:policy/execution"]
  ecr_repository_arns                = ["arn:aws:ecr:us-east-1:123456789012:repository/web"]
  kms_key_arns                       = ["arn:aws:kms:us-east-1:123456789012:key/1"]
  permissions_boundary               = "arn:aws:iam::123456789012:policy/boundary"
  tags                               = { team = "shop" }
}

run "created_roles" {
  assert {
    condition     = output.task_role_arn == "arn:aws:iam::123456789012:role/consul-ecs/web-task" && output.task_role_id == "web-task"
    error_message = "task role ${output.task_role_arn}"
  }
  assert {
    condition     = output.execution_role_arn == "arn:aws:iam::123456789012:role/consul-ecs/web-execution"
    error_message = "execution role ${output.execution_role_arn}"
  }
  assert {
    condition     = module.task.task_definition.task_role_arn == output.task_role_arn && module.task.task_definition.execution_role_arn == output.execution_role_arn
    error_message = "the task definition has other roles"
  }
  assert {
    condition     = output.task_tags["team"] == "shop" && output.task_tags["consul.hashicorp.com/partition"] == "p"
    error_message = "task tags ${jsonencode(output.task_tags)}"
  }
}

run "given_roles_are_used_as_they_are" {
  command = plan

  variables {
    create_task_role                   = false
    task_role                          = { id = "mine", arn = "arn:aws:iam::123456789012:role/consul-ecs/mine" }
    create_execution_role              = false
    execution_role                     = { id = "theirs", arn = "arn:aws:iam::123456789012:role/theirs" }
    additional_task_role_policies      = []
    additional_execution_role_policies = []
  }

  assert {
    condition     = output.task_role_id == "mine" && output.execution_role_id == "theirs"
    error_message = "other roles are given out"
  }
}

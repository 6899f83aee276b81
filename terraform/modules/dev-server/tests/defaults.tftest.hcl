# What a plan has with the required variables, and with null for the others.

variables {
  ecs_cluster_arn = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  vpc_id          = "vpc-1"
  subnet_ids      = ["subnet-1"]
}

run "defaults_are_accepted" {
  command = plan

  assert {
    condition     = [for c in jsondecode(aws_ecs_task_definition.this.container_definitions) : c.name] == ["consul-server"]
    error_message = "The containers differ."
  }

  assert {
    condition = jsondecode(jsondecode(aws_ecs_task_definition.this.container_definitions)[0].environment[0].value) == {
      server           = true
      bootstrap_expect = 1
      datacenter       = "dc1"
      node_name        = "server"
      data_dir         = "/opt/consul/data"
      bind_addr        = "{{ GetPrivateIP }}"
      client_addr      = "0.0.0.0"
      ui_config        = { enabled = true }
      connect          = { enabled = true, enable_mesh_gateway_wan_federation = false }
      peering          = { enabled = false }
      ports            = { https = -1, grpc = 8502, grpc_tls = -1 }
    }
    error_message = "The configuration differs."
  }

  assert {
    condition     = length(aws_secretsmanager_secret.this) == 0 && length(aws_iam_role.task) == 0
    error_message = "There is something that the defaults do not need."
  }

  assert {
    condition     = aws_service_discovery_private_dns_namespace.this.name == "dc1" && output.server_dns == "server.dc1"
    error_message = "The name differs."
  }

  assert {
    condition     = aws_ecs_service.this.launch_type == "EC2" && aws_ecs_service.this.deployment_maximum_percent == 100 && !aws_ecs_service.this.wait_for_steady_state
    error_message = "The service differs."
  }
}

run "nulls_are_defaults" {
  command = plan

  variables {
    name                            = null
    consul_image                    = null
    consul_license                  = null
    datacenter                      = null
    node_name                       = null
    service_discovery_namespace     = null
    tls                             = null
    acls                            = null
    additional_dns_names            = null
    bootstrap_token                 = null
    replication_token               = null
    retry_join_wan                  = null
    primary_gateways                = null
    log_configuration               = null
    requires_compatibilities        = null
    launch_type                     = null
    lb_enabled                      = null
    lb_subnets                      = null
    lb_ingress_rule_cidr_blocks     = null
    lb_ingress_rule_security_groups = null
    tags                            = null
  }

  assert {
    condition     = aws_ecs_task_definition.this.family == "server"
    error_message = "The family differs."
  }
}

run "any_tag_of_the_image_is_accepted" {
  command = plan

  variables {
    consul_image = "hashicorp/consul:latest"
  }

  assert {
    condition     = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].image == "hashicorp/consul:latest"
    error_message = "The image differs."
  }
}

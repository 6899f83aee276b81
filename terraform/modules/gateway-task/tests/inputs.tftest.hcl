# The inputs that are refused.
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

run "wrong_kind_and_federation_without_tls" {
  command = plan

  variables {
    kind                               = "gateway"
    enable_mesh_gateway_wan_federation = true
    http_config                        = { x = 1 }
    grpc_config                        = { x = 1 }
    consul_ecs_config                  = { service = {} }
    envoy_readiness_port               = 19000
    iam_role_path                      = "test"
    consul_service_name                = "UPPER"
  }

  expect_failures = [
    var.kind,
    var.enable_mesh_gateway_wan_federation,
    var.http_config,
    var.grpc_config,
    var.consul_ecs_config,
    var.envoy_readiness_port,
    var.iam_role_path,
    var.consul_service_name,
  ]
}

run "two_load_balancers_and_an_address" {
  command = plan

  variables {
    lb_enabled                  = true
    lb_vpc_id                   = "vpc-1"
    lb_subnets                  = ["subnet-1"]
    wan_address                 = "gateway.example.com"
    custom_load_balancer_config = [{ target_group_arn = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/a/1", container_name = "sidecar-proxy", container_port = 8443 }]
    lb_modify_security_group    = true
    lb_modify_security_group_id = "sg-1"
    lan_port                    = 22000
    lb_ingress_rule_cidr_blocks = ["10.0.0.0"]
  }

  expect_failures = [var.wan_address, var.custom_load_balancer_config, var.lb_create_security_group, var.lan_port, var.lb_ingress_rule_cidr_blocks]
}

run "everything_else_that_is_refused" {
  command = plan

  variables {
    family                   = "edge_"
    requires_compatibilities = ["EC2"]
    volumes                  = [{ name = "consul_data", host_path = "/certs" }]
    sidecars                 = { proxy = { memroy = 128 } }
    subnets                  = []
    log_configuration        = { logdriver = "awslogs" }
    wan_port                 = 8443.5
    gateway_count            = -1
    tags                     = { "aws:team" = "edge" }
    service_tags             = { "Aws:team" = "edge" }
    iam_role_path            = join("", ["/", join("", [for n in range(512) : "a"]), "/"])

    lb_name                     = "internal-edge"
    lb_ingress_rule_cidr_blocks = ["10.0.0.0/8", "10.0.0.0/8"]
  }

  expect_failures = [
    var.consul_service_name, var.launch_type, var.volumes, var.sidecars, var.subnets, var.log_configuration, var.wan_port,
    var.lb_ingress_rule_cidr_blocks, var.gateway_count, var.tags, var.service_tags, var.iam_role_path, var.lb_name,
  ]
}

run "load_balancer_without_vpc" {
  command = plan

  variables {
    lb_enabled               = true
    lb_subnets               = ["subnet-1"]
    lb_create_security_group = false
    lb_modify_security_group = true
  }

  expect_failures = [var.lb_enabled, var.lb_modify_security_group]
}

run "load_balancer_without_subnets" {
  command = plan

  variables {
    lb_enabled = true
    lb_vpc_id  = "vpc-1"
  }

  expect_failures = [var.lb_enabled]
}

run "other_gateways_have_no_agent" {
  command = plan

  variables {
    generation = "agent"
    kind       = "api-gateway"
    retry_join = ["10.0.0.4"]
  }

  expect_failures = [var.kind]
}

run "transparent_proxy_on_fargate" {
  command = plan

  variables {
    enable_transparent_proxy = true
  }

  expect_failures = [var.enable_transparent_proxy]
}

run "certificate_without_tls_has_no_effect" {
  command = plan

  variables {
    consul_ca_cert_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:ca-AbCdEf"
  }

  expect_failures = [check.unused_variables]
}

run "transparent_proxy_of_a_gateway_has_no_effect" {
  command = plan

  variables {
    requires_compatibilities = ["EC2"]
    launch_type              = "EC2"
    enable_transparent_proxy = true
  }

  expect_failures = [check.unused_variables]
}

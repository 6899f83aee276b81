# Variables that a plan refuses.

variables {
  ecs_cluster_arn = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  vpc_id          = "vpc-1"
  subnet_ids      = ["subnet-1"]
}

run "all_mistakes_at_once" {
  command = plan

  variables {
    name                               = "no_dns_name"
    node_name                          = "a b"
    service_discovery_namespace        = "a'b"
    subnet_ids                         = []
    tls                                = false
    additional_dns_names               = ["'; rm"]
    gossip_encryption_enabled          = true
    generate_gossip_encryption_key     = false
    acls                               = true
    generate_bootstrap_token           = false
    bootstrap_token                    = "00000000-0000-0000-0000-000000000000"
    enable_mesh_gateway_wan_federation = true
    launch_type                        = "EXTERNAL"
    log_configuration                  = { logdriver = "awslogs" }
    secret_recovery_window_in_days     = 3
    consul_server_startup_timeout      = 0
    tags                               = { "aws:team" = "mesh" }
  }

  expect_failures = [
    var.name, var.node_name, var.service_discovery_namespace, var.subnet_ids, var.additional_dns_names,
    var.generate_gossip_encryption_key, var.generate_bootstrap_token, var.enable_mesh_gateway_wan_federation,
    var.launch_type, var.log_configuration, var.secret_recovery_window_in_days, var.consul_server_startup_timeout, var.tags,
  ]
}

run "given_ca_needs_both_parts" {
  command = plan

  variables {
    tls         = true
    generate_ca = false
    ca_cert_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:cert-AbCdEf"
  }

  expect_failures = [var.generate_ca]
}

run "secondary_datacenter_needs_a_replication_token" {
  command = plan

  variables {
    acls               = true
    datacenter         = "dc2"
    primary_datacenter = "dc1"
  }

  expect_failures = [var.replication_token]
}

run "primary_gateways_need_federation" {
  command = plan

  variables {
    primary_gateways = ["10.0.0.1:8443"]
  }

  expect_failures = [var.primary_gateways]
}

run "launch_type_is_compatible" {
  command = plan

  variables {
    requires_compatibilities = ["FARGATE"]
  }

  expect_failures = [var.requires_compatibilities]
}

run "servers_join_in_one_way" {
  command = plan

  variables {
    datacenter                         = "DC1"
    lb_enabled                         = true
    tls                                = true
    retry_join_wan                     = ["a"]
    primary_gateways                   = ["b"]
    enable_mesh_gateway_wan_federation = true
  }

  expect_failures = [var.datacenter, var.lb_enabled, var.retry_join_wan]
}

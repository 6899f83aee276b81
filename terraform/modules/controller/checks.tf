locals {
  agentless_only = {
    consul_server_hosts      = var.consul_server_hosts != ""
    skip_server_watch        = var.skip_server_watch
    tls                      = var.tls
    tls_server_name          = var.tls_server_name != ""
    consul_ca_cert_arn       = var.consul_ca_cert_arn != ""
    consul_https_ca_cert_arn = var.consul_https_ca_cert_arn != ""
    http_config              = length(keys(var.http_config)) > 0
    grpc_config              = length(keys(var.grpc_config)) > 0
  }
  agent_only = {
    consul_server_http_addr   = var.consul_server_http_addr != ""
    consul_server_ca_cert_arn = var.consul_server_ca_cert_arn != ""
  }
  ignored = [for name, given in local.agent ? tomap(local.agentless_only) : tomap(local.agent_only) : name if given]
}

check "generation" {
  assert {
    condition     = length(local.ignored) == 0
    error_message = "The generation \"${var.generation}\" does not read ${nonsensitive(join(", ", local.ignored))}: remove them, or change generation."
  }
}

check "region" {
  assert {
    condition     = var.region == null || var.region == data.aws_region.current.id
    error_message = "region has no effect: the controller is in the provider's region, ${data.aws_region.current.id}. Configure the provider for ${coalesce(var.region, "it")}, or remove region."
  }
}

check "partition" {
  assert {
    # Not ||, whose result is unknown in the plan while consul_partition is unknown.
    condition     = var.consul_partitions_enabled ? true : contains(["", "default"], var.consul_partition)
    error_message = "consul_partition has no effect while consul_partitions_enabled is false."
  }
}

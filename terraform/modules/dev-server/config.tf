locals {
  node_name  = coalesce(var.node_name, var.name)
  namespace  = coalesce(var.service_discovery_namespace, var.datacenter)
  server_dns = "${var.name}.${local.namespace}"
  secondary  = !contains(["", var.datacenter], var.primary_datacenter)

  directory = "/opt/consul" # volume of data and configuration; /consul is that of the certificates
  tls_files = "/consul/tls"

  # One document, so that no setting is given twice; without secrets.
  settings = {
    server             = true
    bootstrap_expect   = 1
    datacenter         = var.datacenter
    primary_datacenter = var.primary_datacenter == "" ? null : var.primary_datacenter
    node_name          = local.node_name
    data_dir           = "${local.directory}/data"
    bind_addr          = "{{ GetPrivateIP }}"
    client_addr        = "0.0.0.0"
    ui_config          = { enabled = true }
    connect            = { enabled = true, enable_mesh_gateway_wan_federation = var.enable_mesh_gateway_wan_federation }
    peering            = { enabled = var.enable_cluster_peering }
    ports              = var.tls ? { https = 8501, grpc = -1, grpc_tls = 8503 } : { https = -1, grpc = 8502, grpc_tls = -1 }
    retry_join_wan     = length(var.retry_join_wan) == 0 ? null : var.retry_join_wan
    primary_gateways   = length(var.primary_gateways) == 0 ? null : var.primary_gateways
    acl                = var.acls ? { enabled = true, default_policy = "deny", down_policy = "extend-cache", enable_token_replication = local.secondary } : null
    auto_encrypt       = var.tls ? { allow_tls = true } : null
    tls = var.tls ? {
      defaults = {
        ca_file         = "${local.tls_files}/ca.pem"
        cert_file       = "${local.tls_files}/server.pem"
        key_file        = "${local.tls_files}/server-key.pem"
        verify_outgoing = true
      }
      internal_rpc = { verify_incoming = true, verify_server_hostname = true }
    } : null
  }
  configuration = { for k, v in local.settings : k => v if v != null }

  # What each secret adds to the configuration.
  secret_settings = {
    CONSUL_BOOTSTRAP_TOKEN   = "{\"acl\":{\"tokens\":{\"initial_management\":\"%s\",\"agent\":\"%s\"}}}"
    CONSUL_REPLICATION_TOKEN = "{\"acl\":{\"tokens\":{\"replication\":\"%s\",\"agent\":\"%s\"}}}"
    CONSUL_GOSSIP_KEY        = "{\"encrypt\":\"%s\"}"
  }

  server_script = join("\n", concat(
    [
      "set -eu",
      "umask 077",
      "mkdir -p ${local.directory}/config",
      "cd ${local.directory}/config",
      "printf '%s' \"$CONSUL_SERVER_CONFIG\" >server.json",
    ],
    [for s in local.server_secrets : join(" ", concat(
      ["printf", "'${local.secret_settings[s.name]}'"],
      [for n in range(length(split("%s", local.secret_settings[s.name])) - 1) : "\"$${${s.name}}\""],
      [">${lower(s.name)}.json"],
    )) if contains(keys(local.secret_settings), s.name)],
    [for s in local.server_secrets : "unset ${s.name}" if contains(keys(local.secret_settings), s.name)],
    ["exec consul agent -config-dir=${local.directory}/config"],
  ))

  tls_script = join("\n", [
    "set -eu",
    "umask 077",
    "mkdir -p ${local.tls_files}/ca",
    "cd ${local.tls_files}/ca",
    "printf '%s\\n' \"$CONSUL_CA_CERT\" >ca.pem",
    "printf '%s\\n' \"$CONSUL_CA_KEY\" >ca-key.pem",
    "ip=$(curl -sSf --retry 5 \"$ECS_CONTAINER_METADATA_URI_V4\" | sed -n 's/.*\"IPv4Addresses\":\\[\"\\([0-9.]*\\)\".*/\\1/p')",
    join(" ", concat(
      ["consul tls cert create -server -ca=ca.pem -key=ca-key.pem -dc=${var.datacenter} -node=${local.node_name}"],
      ["-additional-ipaddress=\"$ip\""],
      [for name in concat([local.server_dns], var.additional_dns_names) : "-additional-dnsname='${name}'"],
    )),
    "mv ${var.datacenter}-server-consul-0.pem ${local.tls_files}/server.pem",
    "mv ${var.datacenter}-server-consul-0-key.pem ${local.tls_files}/server-key.pem",
    "mv ca.pem ${local.tls_files}/ca.pem",
    "rm -r ${local.tls_files}/ca",
  ])
}

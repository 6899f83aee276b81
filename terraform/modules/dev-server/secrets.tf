# Everything here is in the state. Nothing of it is in a task definition, where everyone
# who may describe it could read it, and Terraform shows none of it: random_bytes marks its values
# as sensitive and has no id.

locals {
  generate_ca    = var.tls && var.generate_ca
  generate_token = var.acls && var.generate_bootstrap_token && !local.secondary # which has the primary's
  generate_key   = var.gossip_encryption_enabled && var.generate_gossip_encryption_key

  token_hex = local.generate_token ? random_bytes.bootstrap_token[0].hex : ""
  token = local.generate_token ? join("-", [
    substr(local.token_hex, 0, 8), substr(local.token_hex, 8, 4), substr(local.token_hex, 12, 4), substr(local.token_hex, 16, 4), substr(local.token_hex, 20, 12),
  ]) : var.bootstrap_token

  # Which secrets the module stores: known in the first plan.
  stored = {
    for name, stored in {
      ca-cert           = local.generate_ca
      ca-key            = local.generate_ca
      bootstrap-token   = local.generate_token
      gossip-key        = local.generate_key
      replication-token = var.acls && local.secondary
      license           = nonsensitive(var.consul_license != "")
    } : name => name if stored
  }
  contents = {
    ca-cert           = local.generate_ca ? tls_self_signed_cert.ca[0].cert_pem : ""
    ca-key            = local.generate_ca ? tls_private_key.ca[0].private_key_pem : ""
    bootstrap-token   = local.token
    gossip-key        = local.generate_key ? random_bytes.gossip_key[0].base64 : ""
    replication-token = var.replication_token
    license           = var.consul_license
  }

  ca_cert_arn         = local.generate_ca ? aws_secretsmanager_secret.this["ca-cert"].arn : var.ca_cert_arn
  ca_key_arn          = local.generate_ca ? aws_secretsmanager_secret.this["ca-key"].arn : var.ca_key_arn
  bootstrap_token_arn = local.generate_token ? aws_secretsmanager_secret.this["bootstrap-token"].arn : var.bootstrap_token_arn
  gossip_key_arn      = local.generate_key ? aws_secretsmanager_secret.this["gossip-key"].arn : var.gossip_key_secret_arn

  server_secrets = concat([for s in [
    { name = "CONSUL_BOOTSTRAP_TOKEN", valueFrom = local.bootstrap_token_arn, on = var.acls && !local.secondary },
    { name = "CONSUL_REPLICATION_TOKEN", valueFrom = try(aws_secretsmanager_secret.this["replication-token"].arn, ""), on = var.acls && local.secondary },
    { name = "CONSUL_GOSSIP_KEY", valueFrom = local.gossip_key_arn, on = var.gossip_encryption_enabled },
    { name = "CONSUL_LICENSE", valueFrom = try(aws_secretsmanager_secret.this["license"].arn, ""), on = contains(keys(local.stored), "license") },
  ] : { name = s.name, valueFrom = s.valueFrom } if s.on], [for name, arn in var.secrets : { name = name, valueFrom = arn } if arn != null])

  tls_secrets = var.tls ? [
    { name = "CONSUL_CA_CERT", valueFrom = local.ca_cert_arn },
    { name = "CONSUL_CA_KEY", valueFrom = local.ca_key_arn },
  ] : []
}

resource "tls_private_key" "ca" {
  count       = local.generate_ca ? 1 : 0
  algorithm   = "ECDSA"
  ecdsa_curve = "P384"
}

resource "tls_self_signed_cert" "ca" {
  count                 = local.generate_ca ? 1 : 0
  private_key_pem       = tls_private_key.ca[0].private_key_pem
  is_ca_certificate     = true
  validity_period_hours = 43800 # five years
  allowed_uses          = ["cert_signing", "crl_signing", "digital_signature"]

  subject {
    common_name  = "Consul Agent CA"
    organization = "HashiCorp Inc."
  }
}

resource "random_bytes" "bootstrap_token" {
  count  = local.generate_token ? 1 : 0
  length = 16
}

resource "random_bytes" "gossip_key" {
  count  = local.generate_key ? 1 : 0
  length = 32
}

# A prefix, because the name of a destroyed secret is taken while it can be recovered.
resource "aws_secretsmanager_secret" "this" {
  for_each                = local.stored
  name_prefix             = "${var.name}-consul-${each.key}-"
  kms_key_id              = var.kms_key_arn
  recovery_window_in_days = var.secret_recovery_window_in_days
  tags                    = local.tags
}

resource "aws_secretsmanager_secret_version" "this" {
  for_each      = local.stored
  secret_id     = aws_secretsmanager_secret.this[each.key].id
  secret_string = local.contents[each.key]
}

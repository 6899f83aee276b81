# Secrets are in Secrets Manager, and the task definition names them.

variables {
  ecs_cluster_arn           = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  vpc_id                    = "vpc-1"
  subnet_ids                = ["subnet-1"]
  tls                       = true
  acls                      = true
  gossip_encryption_enabled = true
}

run "generated" {
  command = apply

  variables {
    consul_license = "licence-text"
    kms_key_arn    = "arn:aws:kms:us-east-1:123456789012:key/1"
  }

  assert {
    condition     = sort(keys(aws_secretsmanager_secret.this)) == sort(["bootstrap-token", "ca-cert", "ca-key", "gossip-key", "license"])
    error_message = "The secrets differ."
  }

  assert {
    condition     = can(regex("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", nonsensitive(output.bootstrap_token_id)))
    error_message = "The bootstrap token is no UUID."
  }

  assert {
    condition = alltrue([
      for secret in [output.bootstrap_token_id, "licence-text", random_bytes.gossip_key[0].base64, tls_private_key.ca[0].private_key_pem] :
      !strcontains(aws_ecs_task_definition.this.container_definitions, nonsensitive(secret))
    ])
    error_message = "The task definition has a secret."
  }

  assert {
    condition = { for s in jsondecode(aws_ecs_task_definition.this.container_definitions)[1].secrets : s.name => s.valueFrom } == {
      CONSUL_BOOTSTRAP_TOKEN = output.bootstrap_token_secret_arn
      CONSUL_GOSSIP_KEY      = output.gossip_key_arn
      CONSUL_LICENSE         = aws_secretsmanager_secret.this["license"].arn
    }
    error_message = "The server's secrets differ."
  }

  assert {
    condition = { for s in jsondecode(aws_ecs_task_definition.this.container_definitions)[0].secrets : s.name => s.valueFrom } == {
      CONSUL_CA_CERT = output.ca_cert_arn
      CONSUL_CA_KEY  = output.ca_key_arn
    }
    error_message = "The secrets of tls-init differ."
  }

  assert {
    condition = { for s in jsondecode(aws_iam_role_policy.execution.policy).Statement : s.Action[0] => toset(s.Resource) } == {
      "secretsmanager:GetSecretValue" = toset([for s in aws_secretsmanager_secret.this : s.arn])
      "kms:Decrypt"                   = toset(["arn:aws:kms:us-east-1:123456789012:key/1"])
      "ecr:GetAuthorizationToken"     = toset(["*"])
    }
    error_message = "The execution role reads other secrets than those of the containers, or cannot decrypt them."
  }
}

run "given" {
  command = plan

  variables {
    generate_ca                    = false
    ca_cert_arn                    = "arn:aws:secretsmanager:us-east-1:123456789012:secret:cert-AbCdEf"
    ca_key_arn                     = "arn:aws:secretsmanager:us-east-1:123456789012:secret:key-AbCdEf"
    generate_bootstrap_token       = false
    bootstrap_token_arn            = "arn:aws:secretsmanager:us-east-1:123456789012:secret:token-AbCdEf"
    bootstrap_token                = "00000000-0000-0000-0000-000000000000"
    generate_gossip_encryption_key = false
    gossip_key_secret_arn          = "arn:aws:secretsmanager:us-east-1:123456789012:secret:gossip-AbCdEf"
  }

  assert {
    condition     = length(aws_secretsmanager_secret.this) == 0
    error_message = "A secret is stored that is given."
  }

  assert {
    condition = [for s in flatten([for c in jsondecode(aws_ecs_task_definition.this.container_definitions) : c.secrets]) : s.valueFrom] == [
      var.ca_cert_arn, var.ca_key_arn, var.bootstrap_token_arn, var.gossip_key_secret_arn,
    ]
    error_message = "The secrets differ."
  }

  assert {
    condition     = nonsensitive(output.bootstrap_token_id) == "00000000-0000-0000-0000-000000000000"
    error_message = "The output differs."
  }
}

run "secondary_datacenter_copies_acls" {
  command = plan

  variables {
    datacenter                         = "dc2"
    primary_datacenter                 = "dc1"
    primary_gateways                   = ["10.0.0.1:8443"]
    enable_mesh_gateway_wan_federation = true
    replication_token                  = "11111111-0000-0000-0000-000000000000"
  }

  assert {
    condition     = contains(keys(aws_secretsmanager_secret.this), "replication-token") && !contains(keys(aws_secretsmanager_secret.this), "bootstrap-token")
    error_message = "The secrets differ."
  }
}

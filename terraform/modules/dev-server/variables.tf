variable "name" {
  description = "Name of the task family, the ECS service, its DNS name in Cloud Map and the security groups. A second server in one cluster or VPC needs another one."
  type        = string
  default     = "server"
  nullable    = false

  validation {
    condition     = can(regex("^[0-9A-Za-z]([0-9A-Za-z-]{0,61}[0-9A-Za-z])?$", var.name))
    error_message = "name must have 1 to 63 letters, digits or '-', the first and the last not '-': it is a DNS name."
  }
}

variable "consul_image" {
  description = "Image of Consul, 1.14 or newer, on Alpine: its shell and curl are used."
  type        = string
  default     = "hashicorp/consul:1.20.1"
  nullable    = false
}

variable "consul_license" {
  description = "Licence of Consul Enterprise; it is stored in Secrets Manager."
  type        = string
  default     = ""
  nullable    = false
  sensitive   = true
}

variable "datacenter" {
  description = "Consul datacenter."
  type        = string
  default     = "dc1"
  nullable    = false

  validation {
    condition     = can(regex("^[0-9a-z_-]+$", var.datacenter))
    error_message = "datacenter must have lower-case letters, digits, '_' or '-' only."
  }
}

variable "node_name" {
  description = "Name of the server's node, by default `name`."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^[0-9A-Za-z_-]*$", var.node_name))
    error_message = "node_name must have letters, digits, '_' or '-' only: it becomes part of a DNS name."
  }
}

variable "service_discovery_namespace" {
  description = "Private DNS namespace that the module creates in Cloud Map, by default the datacenter. A second server in one VPC needs another one."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^[0-9A-Za-z._-]*$", var.service_discovery_namespace))
    error_message = "service_discovery_namespace must be a DNS name."
  }
}

variable "tls" {
  description = "Whether the server uses TLS: HTTPS on port 8501, gRPC with TLS on 8503. HTTP on 8500 remains, for the health check."
  type        = bool
  default     = false
  nullable    = false
}

variable "generate_ca" {
  description = "Generate the CA with `tls`. Its key is in Terraform's state."
  type        = bool
  default     = true
  nullable    = false

  validation {
    condition     = !var.tls || var.generate_ca || (var.ca_cert_arn != "" && var.ca_key_arn != "")
    error_message = "With generate_ca = false set ca_cert_arn and ca_key_arn to secrets with the CA's certificate and key."
  }
}

variable "ca_cert_arn" {
  description = "Secret with the CA's certificate, with `generate_ca = false`."
  type        = string
  default     = ""
  nullable    = false
}

variable "ca_key_arn" {
  description = "Secret with the CA's key, with `generate_ca = false`."
  type        = string
  default     = ""
  nullable    = false
}

variable "additional_dns_names" {
  description = "More names of the server's certificate."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for name in var.additional_dns_names : can(regex("^[0-9A-Za-z*._-]+$", name))])
    error_message = "additional_dns_names must be DNS names."
  }
}

variable "gossip_encryption_enabled" {
  description = "Whether gossip is encrypted."
  type        = bool
  default     = false
  nullable    = false
}

variable "generate_gossip_encryption_key" {
  description = "Generate the gossip key with `gossip_encryption_enabled`. It is in Terraform's state."
  type        = bool
  default     = true
  nullable    = false

  validation {
    condition     = !var.gossip_encryption_enabled || var.generate_gossip_encryption_key || var.gossip_key_secret_arn != ""
    error_message = "With generate_gossip_encryption_key = false set gossip_key_secret_arn to a secret with the key."
  }
}

variable "gossip_key_secret_arn" {
  description = "Secret with the gossip key, with `generate_gossip_encryption_key = false`."
  type        = string
  default     = ""
  nullable    = false
}

variable "acls" {
  description = "Whether ACLs are enabled, with the default policy `deny`."
  type        = bool
  default     = false
  nullable    = false
}

variable "generate_bootstrap_token" {
  description = "Generate the bootstrap token with `acls`. It is in Terraform's state."
  type        = bool
  default     = true
  nullable    = false

  validation {
    condition     = !var.acls || var.generate_bootstrap_token || var.bootstrap_token_arn != "" || !contains(["", var.datacenter], var.primary_datacenter)
    error_message = "With generate_bootstrap_token = false store the token in Secrets Manager and set bootstrap_token_arn: the value of bootstrap_token alone would be in the task definition."
  }
}

variable "bootstrap_token" {
  description = "The token in the secret `bootstrap_token_arn`, for the output `bootstrap_token_id`; the server does not get it from here."
  type        = string
  default     = ""
  nullable    = false
  sensitive   = true
}

variable "bootstrap_token_arn" {
  description = "Secret with the bootstrap token, with `generate_bootstrap_token = false`; a secondary datacenter has that of `primary_datacenter`."
  type        = string
  default     = ""
  nullable    = false
}

variable "primary_datacenter" {
  description = "Primary datacenter of a WAN federation; by default this one."
  type        = string
  default     = ""
  nullable    = false
}

variable "replication_token" {
  description = "Token with which a secondary datacenter with `acls` replicates the ACLs of `primary_datacenter`; it is stored in Secrets Manager."
  type        = string
  default     = ""
  nullable    = false
  sensitive   = true

  validation {
    condition     = (var.replication_token != "") == (var.acls && !contains(["", var.datacenter], var.primary_datacenter))
    error_message = "Set replication_token exactly when acls is true and primary_datacenter is another datacenter than this one."
  }
}

variable "retry_join_wan" {
  description = "Addresses of the primary datacenter's servers."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(var.retry_join_wan) == 0 || length(var.primary_gateways) == 0
    error_message = "Set retry_join_wan or primary_gateways: servers are joined directly or through mesh gateways."
  }
}

variable "primary_gateways" {
  description = "Addresses of the primary datacenter's mesh gateways."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(var.primary_gateways) == 0 || var.enable_mesh_gateway_wan_federation
    error_message = "primary_gateways needs enable_mesh_gateway_wan_federation = true."
  }
}

variable "enable_mesh_gateway_wan_federation" {
  description = "Federate datacenters through mesh gateways."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.enable_mesh_gateway_wan_federation || var.tls
    error_message = "enable_mesh_gateway_wan_federation needs tls = true: gateways route by the names in TLS."
  }
}

variable "enable_cluster_peering" {
  description = "Whether clusters may be peered with this one."
  type        = bool
  default     = false
  nullable    = false
}

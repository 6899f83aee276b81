variable "name_prefix" {
  description = "Prefix of the task family and of the IAM roles: `<name_prefix>-consul-ecs-controller`, in the generation `agent` `<name_prefix>-consul-acl-controller`."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[0-9A-Za-z_-]{1,32}$", var.name_prefix))
    error_message = "name_prefix must have 1 to 32 letters, digits, '_' or '-': with what the module appends, an IAM role's name has at most 64 characters."
  }
}

variable "generation" {
  description = "`agentless` runs the command `controller`, for tasks without a Consul client agent; `agent` runs `acl-controller`, for tasks with one."
  type        = string
  default     = "agentless"
  nullable    = false

  validation {
    condition     = contains(["agentless", "agent"], var.generation)
    error_message = "generation must be \"agentless\" or \"agent\"."
  }
}

variable "consul_ecs_image" {
  description = "Image of consul-ecs in your registry, required: there is no default."
  type        = string
  default     = null

  validation {
    condition     = var.consul_ecs_image != null && var.consul_ecs_image != ""
    error_message = "consul_ecs_image must name the image of consul-ecs in your registry, such as the one that `make image` builds."
  }
}

variable "consul_bootstrap_token_secret_arn" {
  description = "Secret with the controller's ACL token, the bootstrap token or one with the rules of docs/CONTROLLER.md. An SSM parameter is possible, and a JSON key after the ARN."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^arn:[^:]+:(secretsmanager|ssm):", var.consul_bootstrap_token_secret_arn))
    error_message = "consul_bootstrap_token_secret_arn must be the ARN of a secret in Secrets Manager or of an SSM parameter: the token itself would be in the task definition."
  }
}

variable "consul_server_hosts" {
  description = "Address of the Consul servers, without port: a DNS name, an IP address or `exec=` with a command. Required in the generation `agentless`."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.generation != "agentless" || var.consul_server_hosts != ""
    error_message = "Set consul_server_hosts to the address of the Consul servers: the generation \"agentless\" needs it."
  }

  validation {
    condition     = !can(regex("^[A-Za-z+]+://|^[^:=]+:[0-9]*$", var.consul_server_hosts))
    error_message = "consul_server_hosts has a scheme or a port: give the address alone. Ports are http_config.port and grpc_config.port, and TLS is tls."
  }
}

variable "consul_server_http_addr" {
  description = "URL of the Consul servers' HTTP API, such as `https://consul.example.com:8501`. Required in the generation `agent`."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.generation != "agent" || var.consul_server_http_addr != ""
    error_message = "Set consul_server_http_addr to the URL of the Consul servers: the generation \"agent\" needs it."
  }
}

variable "consul_server_ca_cert_arn" {
  description = "Secret with the CA certificate of the Consul servers, in the generation `agent`."
  type        = string
  default     = ""
  nullable    = false
}

variable "skip_server_watch" {
  description = "Use only the addresses of `consul_server_hosts`, for servers behind a load balancer."
  type        = bool
  default     = false
  nullable    = false
}

variable "tls" {
  description = "Whether the Consul servers use TLS, in the generation `agentless`."
  type        = bool
  default     = false
  nullable    = false
}

variable "tls_server_name" {
  description = "Name in the servers' certificate, when it differs from `consul_server_hosts`."
  type        = string
  default     = ""
  nullable    = false
}

variable "consul_ca_cert_arn" {
  description = "Secret with the CA certificate of the Consul servers, in the generation `agentless`."
  type        = string
  default     = ""
  nullable    = false
}

variable "consul_https_ca_cert_arn" {
  description = "Secret with the CA certificate of the servers' HTTP API, when it differs from `consul_ca_cert_arn`."
  type        = string
  default     = ""
  nullable    = false
}

variable "consul_grpc_ca_cert_arn" {
  description = "Accepted and not used: the controller makes no gRPC connection."
  type        = string
  default     = ""
  nullable    = false
}

variable "http_config" {
  description = "Settings of the servers' HTTP API that differ from the others: `port`, `https`, `tls`, `tlsServerName`."
  type        = any
  default     = {}
  nullable    = false

  validation {
    condition     = can(keys(var.http_config)) && length(setsubtract(try(keys(var.http_config), []), ["port", "https", "tls", "tlsServerName"])) == 0
    error_message = "http_config accepts only port, https, tls and tlsServerName."
  }
}

variable "grpc_config" {
  description = "Settings of the servers' gRPC API that differ from the others: `port`, `tls`, `tlsServerName`."
  type        = any
  default     = {}
  nullable    = false

  validation {
    condition     = can(keys(var.grpc_config)) && length(setsubtract(try(keys(var.grpc_config), []), ["port", "tls", "tlsServerName"])) == 0
    error_message = "grpc_config accepts only port, tls and tlsServerName."
  }
}

variable "consul_partitions_enabled" {
  description = "Whether the servers are Consul Enterprise and the cluster has an admin partition."
  type        = bool
  default     = false
  nullable    = false
}

variable "consul_partition" {
  description = "Admin partition of the cluster; used with `consul_partitions_enabled`."
  type        = string
  default     = "default"
  nullable    = false

  validation {
    condition     = !var.consul_partitions_enabled || var.consul_partition != ""
    error_message = "Set consul_partition to the cluster's admin partition, or consul_partitions_enabled to false."
  }
}

variable "iam_role_path" {
  description = "Path of the IAM roles that may log in to Consul: `iam_role_path` of the tasks' modules."
  type        = string
  default     = "/consul-ecs/"
  nullable    = false

  validation {
    condition     = can(regex("^(/[!-.0-~]+)+/?$", var.iam_role_path)) && length(var.iam_role_path) <= 512
    error_message = "iam_role_path must begin with '/' and have a name, such as \"/consul-ecs/\", in up to 512 ASCII characters without spaces: with \"/\" every role of the account could log in as any service."
  }
}

variable "anonymous_read" {
  description = "Whether requests to Consul without a token may read all services and nodes (docs/SETUP.md has who needs that)."
  type        = bool
  default     = false
  nullable    = false
}

variable "token_ttl" {
  description = "After what time tokens of tasks expire, `1m` to `24h`, such as the recommended `24h`; null for never. Nothing is set while tasks are running that do not replace their tokens (docs/SETUP.md)."
  type        = string
  default     = null

  validation {
    condition = var.token_ttl == null ? true : try(alltrue([
      for ttl in [sum([for i, n in regex("^(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?$", var.token_ttl) : coalesce(n, 0) * pow(60, 2 - i)])] :
      ttl >= 60 && ttl <= 86400 # seconds
    ]), false)
    error_message = "token_ttl must be a duration from 1m to 24h, such as \"24h\"."
  }
}

variable "log_level" {
  description = "`TRACE`, `DEBUG`, `INFO`, `WARN` or `ERROR`."
  type        = string
  default     = "INFO"
  nullable    = false

  validation {
    condition     = contains(["TRACE", "DEBUG", "INFO", "WARN", "ERROR"], var.log_level)
    error_message = "log_level must be TRACE, DEBUG, INFO, WARN or ERROR."
  }
}

variable "metrics_port" {
  description = "Port of `/metrics` and `/healthz`; the container has a health check then."
  type        = number
  default     = null

  validation {
    condition     = var.metrics_port == null || try(var.metrics_port >= 1 && var.metrics_port <= 65535 && floor(var.metrics_port) == var.metrics_port, false)
    error_message = "metrics_port must be a whole number from 1 to 65535."
  }
}

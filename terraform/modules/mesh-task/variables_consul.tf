variable "consul_server_hosts" {
  description = "Address of the Consul servers without a port: an IP address, a DNS name, or `exec=` and a command that prints addresses. Required without an agent."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.generation != "agentless" || var.consul_server_hosts != ""
    error_message = "generation agentless needs consul_server_hosts: an IP address, a DNS name, or exec= and a command that prints addresses."
  }

  validation {
    condition     = !can(regex("^[A-Za-z+]+://|^[^:=]+:[0-9]*$", var.consul_server_hosts))
    error_message = "consul_server_hosts has a scheme or a port: give the address alone. Ports are http_config.port and grpc_config.port, and TLS is tls."
  }
}

variable "skip_server_watch" {
  description = "Use only the addresses of `consul_server_hosts`, for servers behind a load balancer."
  type        = bool
  default     = false
  nullable    = false
}

variable "acls" {
  description = "Log in to Consul with the task's IAM role."
  type        = bool
  default     = false
  nullable    = false
}

variable "service_token_auth_method_name" {
  description = "Auth method of services and gateways."
  type        = string
  default     = "iam-ecs-service-token"
  nullable    = false
}

variable "tls" {
  description = "Reach Consul with TLS."
  type        = bool
  default     = false
  nullable    = false
}

variable "tls_server_name" {
  description = "Name in the servers' certificates."
  type        = string
  default     = ""
  nullable    = false
}

variable "ca_cert_file" {
  description = "File with the CA certificate in the containers of the mesh."
  type        = string
  default     = ""
  nullable    = false
}

variable "consul_ca_cert_arn" {
  description = "Secret with the CA certificate of the Consul servers."
  type        = string
  default     = ""
  nullable    = false
}

variable "consul_grpc_ca_cert_arn" {
  description = "Secret with the CA certificate of the servers' gRPC; `consul_ca_cert_arn` when empty."
  type        = string
  default     = ""
  nullable    = false
}

variable "consul_https_ca_cert_arn" {
  description = "Secret with the CA certificate of the servers' HTTPS; `consul_ca_cert_arn` when empty."
  type        = string
  default     = ""
  nullable    = false
}

variable "http_config" {
  description = "Members of `consulServers.http` that override those derived from the other variables."
  type        = any
  default     = {}

  validation {
    condition     = try(length(setsubtract(var.http_config == null ? [] : keys(var.http_config), ["port", "https", "tls", "tlsServerName", "caCertFile"])) == 0, false)
    error_message = "http_config accepts only port, https, tls, tlsServerName and caCertFile."
  }
}

variable "grpc_config" {
  description = "Members of `consulServers.grpc` that override those derived from the other variables."
  type        = any
  default     = {}

  validation {
    condition     = try(length(setsubtract(var.grpc_config == null ? [] : keys(var.grpc_config), ["port", "tls", "tlsServerName", "caCertFile"])) == 0, false)
    error_message = "grpc_config accepts only port, tls, tlsServerName and caCertFile."
  }
}

variable "enable_transparent_proxy" {
  description = "Redirect the traffic of the task's containers to the proxy, in tasks for EC2 only and without an agent. Null: on in such tasks."
  type        = bool
  default     = null

  validation {
    condition     = !coalesce(try(var.consul_ecs_config.transparentProxy.enabled, null), var.enable_transparent_proxy, false) || (var.generation == "agentless" && length(var.requires_compatibilities) == 1 && contains(var.requires_compatibilities, "EC2"))
    error_message = "enable_transparent_proxy needs requires_compatibilities = [\"EC2\"] and generation agentless: Fargate does not grant NET_ADMIN."
  }
}

variable "enable_consul_dns" {
  description = "Have the task's containers ask Consul for names. Needs the transparent proxy."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.enable_consul_dns || coalesce(try(var.consul_ecs_config.transparentProxy.enabled, null), var.enable_transparent_proxy, var.generation == "agentless" && join(",", var.requires_compatibilities) == "EC2")
    error_message = "enable_consul_dns needs enable_transparent_proxy."
  }
}

variable "exclude_inbound_ports" {
  description = "Ports whose inbound connections are not redirected; without any, the TCP ports of the containers but the service's."
  type        = list(number)
  default     = []
  nullable    = false
}

variable "exclude_outbound_ports" {
  description = "Ports to which connections are not redirected."
  type        = list(number)
  default     = []
  nullable    = false
}

variable "exclude_outbound_cidrs" {
  description = "Addresses to which connections are not redirected."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "exclude_uids" {
  description = "Users whose connections are not redirected."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "consul_ecs_config" {
  description = "Members of the configuration that override those derived from the other variables: `service`, `proxy`, `consulLogin`, `transparentProxy`, `healthSync`, `logLevel`, `logJSON`."
  type        = any
  default     = {}

  validation {
    condition     = try(length(setsubtract(var.consul_ecs_config == null ? [] : keys(var.consul_ecs_config), ["service", "proxy", "consulLogin", "transparentProxy", "healthSync", "logLevel", "logJSON"])) == 0, false)
    error_message = "consul_ecs_config accepts only service, proxy, consulLogin, transparentProxy, healthSync, logLevel and logJSON."
  }

  validation {
    condition     = alltrue([for k in ["service", "proxy", "consulLogin", "transparentProxy"] : can(keys(var.consul_ecs_config[k])) || try(var.consul_ecs_config[k], null) == null])
    error_message = "In consul_ecs_config, service, proxy, consulLogin and transparentProxy must be objects."
  }

  validation {
    condition     = length(setsubtract(try(keys(var.consul_ecs_config.service), []), ["enableTagOverride", "weights", "networkResilienceConfig"])) == 0
    error_message = "consul_ecs_config.service accepts only enableTagOverride, weights and networkResilienceConfig."
  }

  validation {
    condition     = length(setsubtract(try(keys(var.consul_ecs_config.service.weights), []), ["passing", "warning"])) == 0
    error_message = "consul_ecs_config.service.weights accepts only passing and warning."
  }

  validation {
    condition     = length(setsubtract(try(keys(var.consul_ecs_config.service.networkResilienceConfig), []), ["enabled", "outlierDetection"])) == 0
    error_message = "consul_ecs_config.service.networkResilienceConfig accepts only enabled and outlierDetection."
  }

  validation {
    condition     = length(setsubtract(try(keys(var.consul_ecs_config.service.networkResilienceConfig.outlierDetection), []), ["interval", "maxFailures", "enforcingConsecutive5xx", "consecutive5xx", "consecutiveGatewayFailure", "enforcingConsecutiveGatewayFailure", "maxEjectionPercent"])) == 0
    error_message = "consul_ecs_config.service.networkResilienceConfig.outlierDetection accepts only interval, maxFailures, enforcingConsecutive5xx, consecutive5xx, consecutiveGatewayFailure, enforcingConsecutiveGatewayFailure and maxEjectionPercent."
  }

  validation {
    condition     = length(setsubtract(try(keys(var.consul_ecs_config.proxy), []), ["meshGateway", "expose", "config", "localServiceAddress", "namedUpstreams"])) == 0
    error_message = "consul_ecs_config.proxy accepts only meshGateway, expose, config, localServiceAddress and namedUpstreams."
  }

  validation {
    condition     = length(setsubtract(try(keys(var.consul_ecs_config.proxy.meshGateway), []), ["mode"])) == 0
    error_message = "consul_ecs_config.proxy.meshGateway accepts only mode."
  }

  validation {
    condition     = length(setsubtract(try(keys(var.consul_ecs_config.proxy.expose), []), ["checks", "paths"])) == 0
    error_message = "consul_ecs_config.proxy.expose accepts only checks and paths."
  }

  validation {
    condition     = length(setsubtract(try(flatten([for p in var.consul_ecs_config.proxy.expose.paths : keys(p)]), []), ["listenerPort", "path", "localPathPort", "protocol"])) == 0
    error_message = "consul_ecs_config.proxy.expose.paths accepts only listenerPort, path, localPathPort and protocol."
  }

  validation {
    condition     = length(setsubtract(try(keys(var.consul_ecs_config.consulLogin), []), ["enabled", "method", "datacenter", "includeEntity", "meta", "region", "stsEndpoint", "serverIdHeaderValue"])) == 0
    error_message = "consul_ecs_config.consulLogin accepts only enabled, method, datacenter, includeEntity, meta, region, stsEndpoint and serverIdHeaderValue."
  }

  validation {
    condition     = length(setsubtract(try(keys(var.consul_ecs_config.transparentProxy), []), ["enabled", "excludeInboundPorts", "excludeOutboundPorts", "excludeOutboundCIDRs", "excludeUIDs", "consulDNS"])) == 0
    error_message = "consul_ecs_config.transparentProxy accepts only enabled, excludeInboundPorts, excludeOutboundPorts, excludeOutboundCIDRs, excludeUIDs and consulDNS."
  }

  validation {
    condition     = length(setsubtract(try(keys(var.consul_ecs_config.transparentProxy.consulDNS), []), ["enabled"])) == 0
    error_message = "consul_ecs_config.transparentProxy.consulDNS accepts only enabled."
  }
}

variable "retry_join" {
  description = "With an agent: addresses of the Consul servers, or anything else that Consul's `retry_join` accepts."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = var.generation != "agent" || length(compact(var.retry_join)) > 0
    error_message = "generation agent needs retry_join, the addresses of the Consul servers."
  }
}

variable "consul_http_addr" {
  description = "With an agent: address of a Consul server's HTTP API, for login and logout, and for removing the task's services and node when its agent has ended. Required with `acls`."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.generation != "agent" || !var.acls || var.consul_http_addr != ""
    error_message = "acls with generation agent needs consul_http_addr, the address of a Consul server's HTTP API."
  }
}

variable "consul_server_ca_cert_arn" {
  description = "With an agent: secret with the CA certificate of the servers' RPC; `consul_ca_cert_arn` when empty."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.generation != "agent" || !var.tls || var.consul_server_ca_cert_arn != "" || var.consul_ca_cert_arn != ""
    error_message = "tls with generation agent needs consul_server_ca_cert_arn, the secret with the CA certificate of the servers."
  }
}

variable "client_token_auth_method_name" {
  description = "With an agent: auth method of Consul client agents."
  type        = string
  default     = "iam-ecs-client-token"
  nullable    = false
}

variable "gossip_key_secret_arn" {
  description = "With an agent: secret with the key of the gossip encryption."
  type        = string
  default     = ""
  nullable    = false
}

variable "consul_datacenter" {
  description = "With an agent: its datacenter."
  type        = string
  default     = "dc1"
  nullable    = false
}

variable "consul_primary_datacenter" {
  description = "With an agent: the primary datacenter."
  type        = string
  default     = ""
  nullable    = false
}

variable "enable_acl_token_replication" {
  description = "With an agent: set `acl.enable_token_replication`."
  type        = bool
  default     = false
  nullable    = false
}

variable "consul_agent_configuration" {
  description = "With an agent: HCL that comes last in its configuration."
  type        = string
  default     = ""
  nullable    = false
}

variable "audit_logging" {
  description = "With an agent: write its audit events to standard output (Consul Enterprise)."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.audit_logging || var.acls
    error_message = "audit_logging needs acls: Consul writes audit events only with ACLs enabled."
  }
}

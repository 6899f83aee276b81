variable "generation" {
  description = "`agentless`: the task registers at the Consul servers. `agent`: the task has a Consul client agent."
  type        = string
  default     = "agentless"
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

variable "consul_login" {
  description = "Members of `consulLogin` that override those derived from the other variables."
  type        = any
  default     = {}
}

variable "tls" {
  description = "Reach Consul with TLS."
  type        = bool
  default     = false
  nullable    = false
}

variable "consul_ca_cert_arn" {
  description = "Secret with the CA certificate of the Consul servers."
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

# Without an agent.

variable "consul_server_hosts" {
  description = "Address of the Consul servers: an IP address, a DNS name, or `exec=` and a command that prints addresses. Without a port."
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

variable "consul_grpc_ca_cert_arn" {
  description = "Secret with the CA certificate of the servers' gRPC; `consul_ca_cert_arn` when empty."
  type        = string
  default     = ""
  nullable    = false
}

variable "http_config" {
  description = "Members of `consulServers.http` that override those derived from the other variables."
  type        = any
  default     = {}
}

variable "grpc_config" {
  description = "Members of `consulServers.grpc` that override those derived from the other variables."
  type        = any
  default     = {}
}

# With an agent.

variable "consul_http_addr" {
  description = "Address of a Consul server's HTTP API, for login and logout, and for removing the task's services and node when its agent has ended. Required with `acls`."
  type        = string
  default     = ""
  nullable    = false
}

variable "consul_server_ca_cert_arn" {
  description = "Secret with the CA certificate of the servers' RPC; `consul_ca_cert_arn` when empty."
  type        = string
  default     = ""
  nullable    = false
}

variable "retry_join" {
  description = "Addresses of the Consul servers, or anything else that Consul's `retry_join` accepts."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "client_token_auth_method_name" {
  description = "Auth method of Consul client agents."
  type        = string
  default     = "iam-ecs-client-token"
  nullable    = false
}

variable "gossip_key_secret_arn" {
  description = "Secret with the key of the gossip encryption."
  type        = string
  default     = ""
  nullable    = false
}

variable "consul_datacenter" {
  description = "Datacenter of the agent."
  type        = string
  default     = "dc1"
  nullable    = false
}

variable "consul_primary_datacenter" {
  description = "Primary datacenter."
  type        = string
  default     = ""
  nullable    = false
}

variable "enable_acl_token_replication" {
  description = "Set `acl.enable_token_replication` of the agent."
  type        = bool
  default     = false
  nullable    = false
}

variable "consul_agent_configuration" {
  description = "HCL that comes last in the agent's configuration."
  type        = string
  default     = ""
  nullable    = false
}

variable "audit_logging" {
  description = "Write audit events of the agent to standard output (Consul Enterprise)."
  type        = bool
  default     = false
  nullable    = false
}

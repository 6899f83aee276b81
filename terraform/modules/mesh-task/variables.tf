variable "family" {
  description = "Family of the task definition."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-zA-Z0-9_-]{1,255}$", var.family))
    error_message = "family must have 1 to 255 letters, digits, '-' and '_'."
  }

  validation {
    condition     = !var.create_task_role || length(var.family) <= 59
    error_message = "family has more than 59 characters: the task role is named <family>-task, and IAM allows 64. Shorten it, or set create_task_role = false and task_role."
  }

  validation {
    condition     = !var.create_execution_role || length(var.family) <= 54
    error_message = "family has more than 54 characters: the execution role is named <family>-execution, and IAM allows 64. Shorten it, or set create_execution_role = false and execution_role."
  }
}

variable "generation" {
  description = "`agentless`: the task registers at the Consul servers. `agent`: the task has a Consul client agent, as with consul-ecs 0.6."
  type        = string
  default     = "agentless"
  nullable    = false

  validation {
    condition     = contains(["agentless", "agent"], var.generation)
    error_message = "generation must be agentless or agent."
  }
}

variable "consul_service_name" {
  description = "Name of the service in Consul; the family in lower case when empty."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([a-z0-9]([a-z0-9_-]*[a-z0-9])?)?$", var.consul_service_name))
    error_message = "consul_service_name must have only lower-case letters, digits, '-' and '_', and begin and end with a letter or a digit."
  }

  validation {
    condition     = var.consul_service_name != "" || can(regex("^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$", lower(var.family)))
    error_message = "consul_service_name must be set: family begins or ends with '-' or '_', which a service name must not."
  }
}

variable "consul_service_tags" {
  description = "Tags of the service in Consul."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "consul_service_meta" {
  description = "Metadata of the service in Consul."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "consul_namespace" {
  description = "Namespace of the service (Consul Enterprise). Needs `consul_partition`."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = (var.consul_namespace == "") == (var.consul_partition == "")
    error_message = "consul_namespace and consul_partition need each other: set both or neither."
  }
}

variable "consul_partition" {
  description = "Admin partition of the service (Consul Enterprise). Needs `consul_namespace`."
  type        = string
  default     = ""
  nullable    = false
}

variable "requires_compatibilities" {
  description = "Launch types that the task definition must be valid for."
  type        = list(string)
  default     = ["EC2", "FARGATE"]
  nullable    = false
}

variable "cpu" {
  description = "CPU units of the task."
  type        = number
  default     = 256
  nullable    = false
}

variable "memory" {
  description = "Memory of the task in MiB."
  type        = number
  default     = 512
  nullable    = false
}

variable "runtime_platform" {
  description = "Platform of the task, such as `{ cpu_architecture = \"ARM64\" }`."
  type = object({
    cpu_architecture        = optional(string)
    operating_system_family = optional(string, "LINUX")
  })
  default = null
}

variable "ephemeral_storage" {
  description = "Ephemeral storage of a task on Fargate in GiB."
  type        = number
  default     = null
}

variable "placement_constraints" {
  description = "Placement constraints of the task definition. On EC2, one for the architecture of `runtime_platform` is added."
  type = list(object({
    type       = string
    expression = optional(string)
  }))
  default  = []
  nullable = false
}

variable "skip_destroy" {
  description = "Keep old revisions of the task definition registered."
  type        = bool
  default     = false
  nullable    = false
}

variable "volumes" {
  description = "Volumes of the task, with `name`, `host_path`, `docker_volume_configuration`, `efs_volume_configuration` or `fsx_windows_file_server_volume_configuration` as in `aws_ecs_task_definition`."
  type        = any
  default     = []
  nullable    = false

  validation {
    condition     = can([for v in var.volumes : v.name])
    error_message = "Each item of volumes needs a name."
  }

  validation {
    condition     = try(length(distinct([for v in var.volumes : v.name])) == length(var.volumes), true)
    error_message = "Two items of volumes have the same name."
  }

  validation {
    condition = (
      can([for v in var.volumes : v.efs_volume_configuration.file_system_id if try(v.efs_volume_configuration, null) != null]) &&
      can([for v in var.volumes : [for f in [v.fsx_windows_file_server_volume_configuration] : [f.file_system_id, f.root_directory, f.authorization_config.credentials_parameter, f.authorization_config.domain]] if try(v.fsx_windows_file_server_volume_configuration, null) != null])
    )
    error_message = "In volumes, efs_volume_configuration needs file_system_id, and fsx_windows_file_server_volume_configuration needs file_system_id, root_directory, and authorization_config with credentials_parameter and domain."
  }

  validation {
    condition     = try(alltrue([for v in var.volumes : v.name != "consul_data" || length([for k in keys(v) : k if v[k] != null]) == 1]), true)
    error_message = "volumes has consul_data with settings. It holds the task's tokens, and such a volume outlives the task or is shared with others: rename yours, or leave it out."
  }
}

variable "container_definitions" {
  description = "Containers of the application, as in the ECS API."
  type        = any

  validation {
    condition     = can([for c in var.container_definitions : c.name])
    error_message = "container_definitions must be a list of containers, each with a name."
  }
}

variable "port" {
  description = "Port of the application. 0 with `outbound_only` only."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.port > 0 || var.outbound_only
    error_message = "port must be set, or outbound_only to true."
  }

  validation {
    condition     = var.port >= 0 && var.port <= 65535 && floor(var.port) == var.port
    error_message = "port must be a whole number from 1 to 65535."
  }
}

variable "outbound_only" {
  description = "The application calls other services only, and has no port."
  type        = bool
  default     = false
  nullable    = false
}

variable "upstreams" {
  description = "Services that the application calls through ports of the proxy, in the form of `proxy.upstreams`."
  type        = any
  default     = []
  nullable    = false

  validation {
    condition     = can([for u in var.upstreams : "${u.destinationName}:${tonumber(u.localBindPort)}"])
    error_message = "Each item of upstreams needs destinationName and localBindPort, which is a number."
  }

  validation {
    condition     = length(setsubtract(try(flatten([for u in var.upstreams : keys(u)]), []), ["destinationType", "destinationNamespace", "destinationPartition", "destinationPeer", "destinationName", "datacenter", "localBindAddress", "localBindPort", "config", "meshGateway"])) == 0
    error_message = "upstreams accepts only destinationType, destinationNamespace, destinationPartition, destinationPeer, destinationName, datacenter, localBindAddress, localBindPort, config and meshGateway."
  }
}

variable "checks" {
  description = "With an agent: checks that Consul runs itself. With any, health checks of ECS are not synced."
  type        = any
  default     = []
  nullable    = false

  validation {
    condition     = try(length(var.checks), 0) == 0 || var.generation == "agent"
    error_message = "checks need generation agent: without an agent nothing runs them. Give the container a healthCheck."
  }

  validation {
    condition     = length(setsubtract(try(flatten([for c in var.checks : keys(c)]), []), ["checkId", "name", "args", "interval", "timeout", "ttl", "http", "header", "method", "body", "tcp", "udp", "status", "notes", "tlsServerName", "tlsSkipVerify", "grpc", "grpcUseTls", "h2ping", "h2pingUseTls", "aliasNode", "aliasService", "successBeforePassing", "failuresBeforeCritical"])) == 0
    error_message = "checks accepts only the members of service.checks in docs/CONFIGURATION.md."
  }
}

variable "application_shutdown_delay_seconds" {
  description = "How long an application keeps running after TERM for callers that still reach it. Null: until no callers remain. 0 or less: no delay."
  type        = number
  default     = null
}

variable "tags" {
  description = "Tags of the task definition and of the roles; a null value leaves a tag out."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = !anytrue([for k in keys(var.tags) : startswith(lower(k), "aws:")])
    error_message = "tags has a key that begins with aws:, which AWS reserves: rename or remove it."
  }
}

variable "envoy_public_listener_port" {
  description = "Port of the proxy for callers in the mesh."
  type        = number
  default     = 20000
  nullable    = false

  validation {
    condition     = var.envoy_public_listener_port >= 1 && var.envoy_public_listener_port <= 65535 && floor(var.envoy_public_listener_port) == var.envoy_public_listener_port
    error_message = "envoy_public_listener_port must be from 1 to 65535."
  }

  validation {
    condition     = !contains([8300, 8301, 8302, 8500, 8501, 8502, 8503, 8600, 10000, 19000], var.envoy_public_listener_port)
    error_message = "envoy_public_listener_port must not be one of the ports reserved for Consul and Envoy: 8300 to 8302, 8500 to 8503, 8600, 10000 and 19000."
  }
}

variable "envoy_readiness_port" {
  description = "Port on which the proxy answers that it is ready. Not with an agent."
  type        = number
  default     = 22000
  nullable    = false

  validation {
    condition     = var.envoy_readiness_port >= 1 && var.envoy_readiness_port <= 65535 && floor(var.envoy_readiness_port) == var.envoy_readiness_port
    error_message = "envoy_readiness_port must be from 1 to 65535."
  }

  validation {
    condition     = !contains([8600, 19000], var.envoy_readiness_port)
    error_message = "envoy_readiness_port must not be one of the ports reserved for Consul and Envoy: 8600 and 19000."
  }

  validation {
    condition     = var.generation == "agent" || var.envoy_readiness_port != var.envoy_public_listener_port
    error_message = "envoy_readiness_port and envoy_public_listener_port must differ."
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

  validation {
    condition     = !can(regex("hashicorp/consul-ecs(:|@|$)", var.consul_ecs_image))
    error_message = "consul_ecs_image is hashicorp/consul-ecs, which does not have the commands that this module's containers run: name the image that `make image` builds."
  }
}

variable "envoy_image" {
  description = "Image of Envoy; that of [render](../render) when null."
  type        = string
  default     = null
}

variable "consul_dataplane_image" {
  description = "Image of consul-dataplane. Without one, Envoy reaches the servers without consul-dataplane (`proxy.mode` `direct`)."
  type        = string
  default     = null
}

variable "consul_image" {
  description = "Image of the agent's container; that of [render](../render) when null."
  type        = string
  default     = null
}

variable "log_configuration" {
  description = "`logConfiguration` of the containers of the mesh. Without it they have that of the first essential application that has one."
  type        = any
  default     = null

  validation {
    condition     = var.log_configuration == null || try(length(keys(var.log_configuration)) == 0, false) || can(var.log_configuration.logDriver)
    error_message = "log_configuration must be an object as in the ECS API, with logDriver and options; null or {} means none."
  }
}

variable "envoy_concurrency" {
  description = "Number of Envoy's worker threads."
  type        = number
  default     = 2
  nullable    = false

  validation {
    condition     = var.envoy_concurrency >= 1 && var.envoy_concurrency <= 1024 && floor(var.envoy_concurrency) == var.envoy_concurrency
    error_message = "envoy_concurrency is an integer from 1 to 1024."
  }
}

variable "ignore_containers" {
  description = "Names of containers that the containers of the mesh do not wait for when the task ends, besides FireLens routers and those with the label `consul.hashicorp.com/depends` `false`. A `*` at the end of a name stands for any further characters."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for n in var.ignore_containers : can(regex("^[a-zA-Z0-9_-]+[*]?$", n))])
    error_message = "ignore_containers has ${join(", ", [for n in var.ignore_containers : n == null ? "null" : n if !can(regex("^[a-zA-Z0-9_-]+[*]?$", n))])}: use names of containers, or the beginning of one and a * at its end."
  }
}

variable "sidecars" {
  description = "Settings of individual containers of the mesh by role (`install`, `client`, `mesh_init`, `proxy`, `health_sync`, and `all`): `image`, `essential`, `cpu`, `memory`, `memory_reservation`, `user`, `readonly_root_filesystem`, `add_capabilities`, `drop_capabilities`, `start_timeout`, `stop_timeout`, `environment`, `secrets`, `docker_labels`, `port_mappings`, `mount_points`, `health_check`, `restart_policy` and `log_configuration`; see [render](../render)."
  type        = any
  default     = {}

  validation {
    condition     = length(setsubtract(try(flatten([for role in keys(var.sidecars) : keys(var.sidecars[role]) if var.sidecars[role] != null]), []), ["image", "essential", "cpu", "memory", "memory_reservation", "user", "readonly_root_filesystem", "add_capabilities", "drop_capabilities", "start_timeout", "stop_timeout", "environment", "secrets", "docker_labels", "port_mappings", "mount_points", "health_check", "restart_policy", "log_configuration"])) == 0
    error_message = "A role in sidecars accepts only image, essential, cpu, memory, memory_reservation, user, readonly_root_filesystem, add_capabilities, drop_capabilities, start_timeout, stop_timeout, environment, secrets, docker_labels, port_mappings, mount_points, health_check, restart_policy and log_configuration."
  }
}

variable "family" {
  description = "Family of the task definition. In lower case it is the service's name where the configuration has none."
  type        = string
}

variable "requires_compatibilities" {
  description = "Launch types that the task definition must be valid for. Stop timeouts end at 120 s with `FARGATE` or none; the transparent proxy is off unless this is `[\"EC2\"]` or the configuration has it."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "memory" {
  description = "Memory of the task in MiB. Without it each container of the mesh reserves its own."
  type        = number
  default     = null
}

variable "runtime_platform" {
  description = "Platform of the task. On EC2 the architecture becomes a placement constraint."
  type = object({
    cpu_architecture        = optional(string)
    operating_system_family = optional(string)
  })
  default = null
}

variable "placement_constraints" {
  description = "Placement constraints of the task definition."
  type = list(object({
    type       = string
    expression = optional(string)
  }))
  default  = []
  nullable = false
}

variable "container_definitions" {
  description = "Containers of the application, as in the ECS API."
  type        = any
  default     = []
  nullable    = false

  validation {
    condition     = can([for c in var.container_definitions : regex("^[a-zA-Z0-9_-]{1,255}$", c.name)])
    error_message = "Each container in container_definitions needs a name of 1 to 255 letters, digits, '-' and '_'."
  }
  validation {
    condition     = try(length(distinct(var.container_definitions[*].name)) == length(var.container_definitions), true)
    error_message = "Two containers in container_definitions have the same name."
  }
  validation {
    condition     = try(alltrue([for c in var.container_definitions : !contains(local.reserved, c.name)]), true)
    error_message = "A container in container_definitions has the name of a container of the mesh: rename it. Reserved are consul-ecs-install, consul-client, consul-ecs-mesh-init, sidecar-proxy, consul-dataplane and consul-ecs-health-sync."
  }
}

variable "volumes" {
  description = "Names of the task's other volumes."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "configuration" {
  description = "Content of `CONSUL_ECS_CONFIG_JSON`, except for what is derived from the containers. With `consulServers` the task has no agent, with `gateway` it is a gateway."
  type        = any
  default     = {}
  nullable    = false
}

variable "images" {
  description = "Images of the containers of the mesh. That of consul-ecs is yours, and required."
  type = object({
    consul_ecs = optional(string)
    envoy      = optional(string, "envoyproxy/envoy:v1.40.0")
    dataplane  = optional(string, "hashicorp/consul-dataplane:1.9.0")
    consul     = optional(string, "hashicorp/consul:1.20.1")
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.images.consul_ecs != null && var.images.consul_ecs != ""
    error_message = "images.consul_ecs must name the image of consul-ecs in your registry, such as the one that `make image` builds."
  }
}

variable "secrets" {
  description = "Secrets of the containers that reach Consul."
  type = list(object({
    name      = string
    valueFrom = string
  }))
  default  = []
  nullable = false
}

variable "client" {
  description = "Consul agent of a task that has one. `arguments` come last in the command of `client-entrypoint`; `secrets` are those that no other container needs."
  type = object({
    retry_join    = optional(list(string), [])
    datacenter    = optional(string, "")
    configuration = optional(string, "")
    arguments     = optional(list(string), [])
    secrets       = optional(list(object({ name = string, valueFrom = string })), [])
  })
  default  = {}
  nullable = false
}

variable "log_configuration" {
  description = "`logConfiguration` of all containers of the mesh. Without it they have that of the first essential application that has one."
  type        = any
  default     = null
}

variable "shutdown_delay" {
  description = "`-shutdown-delay` of applications that do not set it themselves: `auto`, or a time such as `5s`. Null leaves it to `app-entrypoint`, whose default is `auto`."
  type        = string
  default     = null
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
  description = "Settings of individual containers of the mesh by role: `install`, `client`, `mesh_init`, `proxy`, `health_sync`; `all` applies where a role has no setting itself. Variables, secrets, ports, mounts and labels are added to those of `all`. Without settings the containers have a read-only root filesystem, no capabilities and a user of their own."
  type = map(object({
    image                    = optional(string)
    essential                = optional(bool)
    cpu                      = optional(number)
    memory                   = optional(number)
    memory_reservation       = optional(number)
    user                     = optional(string)
    readonly_root_filesystem = optional(bool)
    add_capabilities         = optional(list(string))
    drop_capabilities        = optional(list(string))
    start_timeout            = optional(number)
    stop_timeout             = optional(number)
    environment              = optional(list(object({ name = string, value = string })), [])
    secrets                  = optional(list(object({ name = string, valueFrom = string })), [])
    docker_labels            = optional(map(string), {})
    port_mappings            = optional(list(object({ containerPort = number, hostPort = optional(number), protocol = optional(string, "tcp"), name = optional(string), appProtocol = optional(string) })), [])
    mount_points             = optional(list(object({ sourceVolume = string, containerPath = string, readOnly = optional(bool, true) })), [])
    health_check             = optional(object({ interval = optional(number), timeout = optional(number), retries = optional(number), start_period = optional(number) }))
    restart_policy           = optional(object({ enabled = optional(bool, true), ignored_exit_codes = optional(list(number)), restart_attempt_period = optional(number) }))
    log_configuration = optional(object({
      log_driver     = string
      options        = optional(map(string))
      secret_options = optional(list(object({ name = string, valueFrom = string })))
    }))
  }))
  default  = {}
  nullable = false

  validation {
    condition     = length(setsubtract(keys(var.sidecars), ["all", "install", "client", "mesh_init", "proxy", "health_sync"])) == 0
    error_message = "The keys of sidecars are all, install, client, mesh_init, proxy and health_sync."
  }
  validation {
    condition     = alltrue([for role, s in var.sidecars : !contains(["install", "mesh_init", "all"], role) || try(s.essential, null) != true])
    error_message = "install and mesh_init exit when their work is done, so they cannot be essential: remove essential from them and from all."
  }
  validation {
    condition     = alltrue([for role, s in var.sidecars : contains(["proxy", "all"], role) || try(s.health_check, null) == null])
    error_message = "Only the proxy has a health check: remove health_check from the other roles."
  }
}

variable "tags" {
  description = "Tags of the task definition."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "module" {
  description = "Name and version of the module that calls this one, for the tags that the controllers and operators read. Null: only the tag `mesh` is added."
  type = object({
    name    = string
    version = string
  })
  default = null
}

variable "ecs_cluster_arn" {
  description = "ECS cluster of the service."
  type        = string
  nullable    = false
}

variable "subnets" {
  description = "Subnets of the tasks."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.subnets) > 0
    error_message = "subnets must have at least one subnet."
  }
}

variable "security_groups" {
  description = "Security groups of the tasks."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "assign_public_ip" {
  description = "Give the tasks public addresses."
  type        = bool
  default     = false
  nullable    = false
}

variable "gateway_count" {
  description = "Number of tasks."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.gateway_count >= 0 && floor(var.gateway_count) == var.gateway_count
    error_message = "gateway_count must be a whole number, 0 or greater."
  }
}

variable "launch_type" {
  description = "Launch type of the service. Not with `capacity_provider_strategy`."
  type        = string
  default     = "FARGATE"
  nullable    = false

  validation {
    condition     = length(var.capacity_provider_strategy) > 0 || contains(var.requires_compatibilities, var.launch_type)
    error_message = "launch_type must be one of requires_compatibilities, or ECS could not start the tasks."
  }
}

variable "capacity_provider_strategy" {
  description = "Capacity providers of the service, in place of `launch_type`."
  type = list(object({
    capacity_provider = string
    weight            = optional(number)
    base              = optional(number)
  }))
  default  = []
  nullable = false
}

variable "deployment_circuit_breaker" {
  description = "Stop a deployment that fails, and roll it back."
  type = object({
    enable   = optional(bool, true)
    rollback = optional(bool, true)
  })
  default = null
}

variable "deployment_minimum_healthy_percent" {
  description = "Percent of `gateway_count` that must remain running during a deployment."
  type        = number
  default     = null
}

variable "deployment_maximum_percent" {
  description = "Percent of `gateway_count` that may run during a deployment."
  type        = number
  default     = null
}

variable "platform_version" {
  description = "Version of the Fargate platform."
  type        = string
  default     = null
}

variable "ordered_placement_strategy" {
  description = "Placement on EC2."
  type = list(object({
    type  = string
    field = optional(string)
  }))
  default  = []
  nullable = false
}

variable "enable_execute_command" {
  description = "Allow ECS Exec, with the permissions for it in the task role. It is on as in the 0.10 module, where the other modules have it off; it needs a writable root filesystem."
  type        = bool
  default     = true
  nullable    = false
}

variable "wait_for_steady_state" {
  description = "Wait until the service is stable."
  type        = bool
  default     = false
  nullable    = false
}

variable "service_tags" {
  description = "Tags of the ECS service."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = !anytrue([for k in keys(var.service_tags) : startswith(lower(k), "aws:")])
    error_message = "service_tags has a key that begins with aws:, which AWS reserves: rename or remove it."
  }
}

variable "lb_enabled" {
  description = "Create a public network load balancer."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.lb_enabled || (length(var.lb_subnets) > 0 && var.lb_vpc_id != "")
    error_message = "lb_enabled needs lb_subnets and lb_vpc_id."
  }
}

variable "lb_name" {
  description = "Name of the load balancer, its target group and its security group. Null: the name of the gateway, shortened when it is too long. Names of load balancers are unique in a region, so set it when another gateway there has the same name."
  type        = string
  default     = null

  validation {
    condition     = var.lb_name == null || can(regex("^[0-9A-Za-z]([0-9A-Za-z-]{0,30}[0-9A-Za-z])?$", var.lb_name)) && !startswith(coalesce(var.lb_name, "-"), "internal-")
    error_message = "lb_name must have 1 to 32 letters, digits and '-', begin and end with a letter or digit, and not begin with internal-."
  }
}

variable "lb_vpc_id" {
  description = "VPC of the load balancer."
  type        = string
  default     = ""
  nullable    = false
}

variable "lb_subnets" {
  description = "Subnets of the load balancer."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "lb_ingress_rule_cidr_blocks" {
  description = "Addresses that may reach the gateway through the load balancer, IPv4 or IPv6; null: all of IPv4."
  type        = list(string)
  default     = null

  validation {
    condition     = alltrue([for block in coalesce(var.lb_ingress_rule_cidr_blocks, []) : can(cidrhost(block, 0))])
    error_message = "lb_ingress_rule_cidr_blocks must be blocks of IPv4 or IPv6 addresses, such as 10.0.0.0/8 or 2001:db8::/32."
  }

  validation {
    condition     = length(distinct(coalesce(var.lb_ingress_rule_cidr_blocks, []))) == length(coalesce(var.lb_ingress_rule_cidr_blocks, []))
    error_message = "lb_ingress_rule_cidr_blocks has a block twice, which EC2 refuses."
  }
}

variable "lb_create_security_group" {
  description = "Create a security group for the tasks that admits `lb_ingress_rule_cidr_blocks`. Without `lb_enabled` none is created."
  type        = bool
  default     = true
  nullable    = false

  validation {
    condition     = !(var.lb_create_security_group && var.lb_modify_security_group)
    error_message = "lb_create_security_group and lb_modify_security_group are mutually exclusive: set lb_create_security_group = false to modify a security group."
  }
}

variable "lb_modify_security_group" {
  description = "Admit `lb_ingress_rule_cidr_blocks` in the security group `lb_modify_security_group_id`."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.lb_modify_security_group || var.lb_modify_security_group_id != ""
    error_message = "lb_modify_security_group needs lb_modify_security_group_id."
  }
}

variable "lb_modify_security_group_id" {
  description = "Security group that is modified."
  type        = string
  default     = ""
  nullable    = false
}

variable "custom_load_balancer_config" {
  description = "Target groups of load balancers that are not created here. `sidecar-proxy` and `consul-dataplane` both name the proxy's container."
  type = list(object({
    target_group_arn = string
    container_name   = string
    container_port   = number
  }))
  default  = []
  nullable = false

  validation {
    condition     = length(var.custom_load_balancer_config) == 0 || !var.lb_enabled
    error_message = "custom_load_balancer_config and lb_enabled are mutually exclusive."
  }
}

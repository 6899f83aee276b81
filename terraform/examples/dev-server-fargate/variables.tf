variable "ecs_cluster_arn" {
  description = "ARN of the ECS cluster."
  type        = string
}

variable "vpc_id" {
  description = "VPC of the tasks."
  type        = string
}

variable "private_subnets" {
  description = "Subnets of the tasks; they reach the registries of the images, CloudWatch Logs and IAM."
  type        = list(string)
}

variable "consul_ecs_image" {
  description = "Image of consul-ecs in your registry."
  type        = string
}

variable "hello_image" {
  description = "Image of the service: it listens on port 9090 and has `/hello` as ENTRYPOINT."
  type        = string
  default     = "example/hello:1"
}

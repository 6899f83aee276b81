locals {
  trust = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Action = "sts:AssumeRole", Effect = "Allow", Principal = { Service = "ecs-tasks.amazonaws.com" } }]
  })
}

resource "aws_iam_role" "task_role" {
  name               = "web-task"
  path               = "/consul-ecs/"
  assume_role_policy = local.trust
  tags               = { "consul.hashicorp.com.service-name" = "web", "consul.hashicorp.com.namespace" = "" }
}

resource "aws_iam_role" "execution_role" {
  name               = "web-execution"
  path               = "/consul-ecs/"
  assume_role_policy = local.trust
}

resource "aws_ecs_task_definition" "definition" {
  family                = "web"
  task_role_arn         = aws_iam_role.task_role.arn
  execution_role_arn    = aws_iam_role.execution_role.arn
  container_definitions = jsonencode([{ name = "web", image = "web:1", memory = 128 }])
}

terraform {
  required_providers {
    aws = {
      source = "hashicorp/aws"
    }
  }
}

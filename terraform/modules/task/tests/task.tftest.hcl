# Whom the roles trust, what they may do, and the tags that Consul's auth method reads.
provider "aws" {
  region = "us-east-1"
}

variables {
  name                     = "web"
  identity                 = { service_name = "shop", namespace = "n" }
  requires_compatibilities = ["FARGATE"]
  cpu                      = 256
  memory                   = 512
  volumes                  = []
  container_definitions    = [{ name = "web", image = "web:1" }]
}

run "trust_and_identity" {
  variables {
    acls                 = true
    role_tags            = { team = "shop", "consul.hashicorp.com.service-name" = "other" }
    permissions_boundary = "arn:aws:iam::123456789012:policy/boundary"
  }

  assert {
    condition = [for r in [aws_iam_role.task[0], aws_iam_role.execution[0]] : jsondecode(r.assume_role_policy).Statement] == [for r in [1, 2] : [{
      Action    = "sts:AssumeRole"
      Effect    = "Allow"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Condition = {
        StringEquals = { "aws:SourceAccount" = "123456789012" }
        ArnLike      = { "aws:SourceArn" = "arn:aws:ecs:us-east-1:123456789012:*" }
      }
    }]]
    error_message = "another principal than ECS is trusted"
  }
  assert {
    condition     = aws_iam_role.task[0].tags == tomap({ team = "shop", "consul.hashicorp.com.service-name" = "shop", "consul.hashicorp.com.namespace" = "n" })
    error_message = "tags ${jsonencode(aws_iam_role.task[0].tags)}"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.task[0].policy).Statement == [{ Action = ["iam:GetRole"], Effect = "Allow", Resource = [aws_iam_role.task[0].arn] }]
    error_message = "policy ${aws_iam_role_policy.task[0].policy}"
  }
  assert {
    condition     = aws_iam_role.task[0].path == "/consul-ecs/" && aws_iam_role.execution[0].path == "/consul-ecs/"
    error_message = "the auth method trusts roles at /consul-ecs/"
  }
  assert {
    condition     = aws_iam_role.task[0].permissions_boundary == var.permissions_boundary && aws_iam_role.execution[0].permissions_boundary == var.permissions_boundary
    error_message = "no permissions boundary"
  }
}

run "without_acls_the_task_may_do_nothing" {
  command = plan

  assert {
    condition     = length(aws_iam_role_policy.task) == 0
    error_message = "a policy without a reason"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.execution[0].policy).Statement == [{ Action = ["ecr:GetAuthorizationToken"], Effect = "Allow", Resource = ["*"] }]
    error_message = "policy ${aws_iam_role_policy.execution[0].policy}"
  }
}

run "execution_role_reads_what_the_task_has" {
  command = plan

  variables {
    container_definitions = [
      { name = "web", image = "web:1", secrets = [{ name = "CA", valueFrom = "arn:aws:secretsmanager:us-east-1:123456789012:secret:ca-AbCdEf" }] },
    ]
    volumes = ["share"]
    volume_configurations = [{ name = "share", fsx_windows_file_server_volume_configuration = {
      file_system_id       = "fs-1"
      root_directory       = "share"
      authorization_config = { credentials_parameter = "arn:aws:secretsmanager:us-east-1:123456789012:secret:share-AbCdEf", domain = "example.com" }
    } }]
    kms_key_arns        = ["arn:aws:kms:us-east-1:123456789012:key/1"]
    ecr_repository_arns = ["arn:aws:ecr:us-east-1:123456789012:repository/web"]
  }

  assert {
    condition = { for s in jsondecode(aws_iam_role_policy.execution[0].policy).Statement : s.Action[0] => s.Resource } == {
      "secretsmanager:GetSecretValue"   = ["arn:aws:secretsmanager:us-east-1:123456789012:secret:ca-AbCdEf", "arn:aws:secretsmanager:us-east-1:123456789012:secret:share-AbCdEf"]
      "kms:Decrypt"                     = ["arn:aws:kms:us-east-1:123456789012:key/1"]
      "ecr:BatchCheckLayerAvailability" = ["arn:aws:ecr:us-east-1:123456789012:repository/web"]
      "ecr:GetAuthorizationToken"       = ["*"]
    }
    error_message = "policy ${aws_iam_role_policy.execution[0].policy}"
  }
}

run "gateways_have_a_kind_and_channels" {
  command = plan

  variables {
    identity               = { service_name = "edge", gateway_kind = "mesh-gateway" }
    enable_execute_command = true
  }

  assert {
    condition     = aws_iam_role.task[0].tags["consul.hashicorp.com.gateway-kind"] == "mesh-gateway"
    error_message = "tags ${jsonencode(aws_iam_role.task[0].tags)}"
  }
  assert {
    condition     = length(jsondecode(aws_iam_role_policy.task[0].policy).Statement[0].Action) == 4
    error_message = "policy ${aws_iam_role_policy.task[0].policy}"
  }
}

run "given_roles" {
  command = plan

  variables {
    create_task_role      = false
    create_execution_role = false
    task_role             = { id = "a", arn = "arn:aws:iam::123456789012:role/a" }
    execution_role        = { id = "b", arn = "arn:aws:iam::123456789012:role/b" }
    acls                  = true
  }

  assert {
    condition     = length(aws_iam_role.task) + length(aws_iam_role.execution) + length(aws_iam_role_policy.task) + length(aws_iam_role_policy.execution) == 0
    error_message = "given roles must stay as they are"
  }
  assert {
    condition     = output.task_role == { id = "a", arn = "arn:aws:iam::123456789012:role/a" } && output.execution_role.id == "b"
    error_message = "other roles are given out"
  }
}

# The variable reaches both roles, as every module has it.
run "trust_without_conditions" {
  variables {
    restrict_role_trust = false
  }

  assert {
    condition     = alltrue([for r in [aws_iam_role.task[0], aws_iam_role.execution[0]] : !strcontains(r.assume_role_policy, "Condition")])
    error_message = "the trust policies have conditions"
  }
}

# What each option adds.

variables {
  name_prefix                       = "mesh"
  consul_ecs_image                  = "123456789012.dkr.ecr.us-east-1.amazonaws.com/consul-ecs:1"
  ecs_cluster_arn                   = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  subnets                           = ["subnet-1"]
  consul_server_hosts               = "consul.example.com"
  consul_bootstrap_token_secret_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:token-AbCdEf:key::"
}

run "roles_have_what_they_need_and_no_more" {
  command = apply

  assert {
    condition = jsondecode(aws_iam_role_policy.task.policy).Statement == [{
      Effect    = "Allow"
      Action    = ["ecs:ListTasks", "ecs:DescribeTasks"]
      Resource  = ["*"]
      Condition = { ArnEquals = { "ecs:cluster" = [var.ecs_cluster_arn] } }
    }]
    error_message = "The task role differs."
  }

  assert {
    condition = { for s in jsondecode(aws_iam_role_policy.execution.policy).Statement : s.Action[0] => s.Resource } == {
      "secretsmanager:GetSecretValue" = ["arn:aws:secretsmanager:us-east-1:123456789012:secret:token-AbCdEf"]
      "ecr:GetAuthorizationToken"     = ["*"]
    }
    error_message = "The execution role differs."
  }

  assert {
    condition = alltrue([for role in [aws_iam_role.task, aws_iam_role.execution] : jsondecode(role.assume_role_policy).Statement == [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Condition = {
        StringEquals = { "aws:SourceAccount" = "123456789012" }
        ArnLike      = { "aws:SourceArn" = "arn:aws:ecs:us-east-1:123456789012:*" }
      }
    }]])
    error_message = "Only ecs-tasks may assume the roles, for tasks of this account and region."
  }

  assert {
    condition     = aws_iam_role.task.path == null || aws_iam_role.task.path == "/" || !startswith(coalesce(aws_iam_role.task.path, "/"), "/consul-ecs/")
    error_message = "The controller's role may log in as a service."
  }
}

run "execution_role_reads_what_the_task_has_and_pulls_when_asked" {
  command = plan

  variables {
    secrets             = { EXTRA = "arn:aws:ssm:us-east-1:123456789012:parameter/extra" }
    ecr_repository_arns = ["arn:aws:ecr:us-east-1:123456789012:repository/consul-ecs"]
    kms_key_arns        = ["arn:aws:kms:us-east-1:123456789012:key/1"]
    log_configuration = {
      logDriver     = "splunk"
      options       = { splunk-url = "https://splunk.example.com" }
      secretOptions = [{ name = "splunk-token", valueFrom = "/mesh/splunk" }]
    }
    extra_container_definitions = [{
      name = "extra", image = "extra:1", secrets = [{ name = "KEY", valueFrom = "arn:aws:secretsmanager:us-east-1:123456789012:secret:extra-AbCdEf" }]
      logConfiguration = {
        logDriver = "awslogs"
        options   = { awslogs-group = "/mesh", awslogs-region = "eu-west-1", awslogs-stream-prefix = "c", awslogs-create-group = "true" }
      }
    }]
  }

  assert {
    condition = { for s in jsondecode(aws_iam_role_policy.execution.policy).Statement : s.Action[0] => s.Resource } == {
      "logs:CreateLogStream"            = ["arn:aws:logs:eu-west-1:123456789012:log-group:/mesh:*"]
      "logs:CreateLogGroup"             = ["arn:aws:logs:eu-west-1:123456789012:log-group:/mesh", "arn:aws:logs:eu-west-1:123456789012:log-group:/mesh:*"]
      "secretsmanager:GetSecretValue"   = ["arn:aws:secretsmanager:us-east-1:123456789012:secret:token-AbCdEf", "arn:aws:secretsmanager:us-east-1:123456789012:secret:extra-AbCdEf"]
      "ssm:GetParameters"               = ["arn:aws:ssm:us-east-1:123456789012:parameter/extra", "arn:aws:ssm:us-east-1:123456789012:parameter/mesh/splunk"]
      "kms:Decrypt"                     = ["arn:aws:kms:us-east-1:123456789012:key/1"]
      "ecr:BatchCheckLayerAvailability" = ["arn:aws:ecr:us-east-1:123456789012:repository/consul-ecs"]
      "ecr:GetAuthorizationToken"       = ["*"]
    }
    error_message = aws_iam_role_policy.execution.policy
  }
}

run "execute_command_has_what_it_needs" {
  command = plan

  variables {
    enable_execute_command = true
  }

  assert {
    condition     = !jsondecode(aws_ecs_task_definition.this.container_definitions)[0].readonlyRootFilesystem
    error_message = "ECS Exec cannot work with a read-only root filesystem."
  }

  assert {
    condition = jsondecode(aws_iam_role_policy.task.policy).Statement[1].Action == [
      "ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel",
      "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel",
    ]
    error_message = "The task role differs."
  }
}

run "placement_timeouts_and_restarts" {
  command = plan

  variables {
    launch_type                = "EC2"
    requires_compatibilities   = ["EC2"]
    placement_constraints      = [{ type = "memberOf", expression = "attribute:ecs.cpu-architecture == arm64" }]
    ordered_placement_strategy = [{ type = "spread", field = "instanceId" }]
    restart_policy             = { ignored_exit_codes = [3] }
    start_timeout              = 60
    stop_timeout               = 40
    skip_destroy               = true
  }

  assert {
    condition     = one(aws_ecs_task_definition.this.placement_constraints).type == "memberOf" && aws_ecs_service.this.ordered_placement_strategy[0].field == "instanceId" && aws_ecs_task_definition.this.skip_destroy
    error_message = "placement"
  }

  assert {
    condition = [for c in jsondecode(aws_ecs_task_definition.this.container_definitions) : [c.restartPolicy, c.startTimeout, c.stopTimeout]] == [
      [{ enabled = true, ignoredExitCodes = [3], restartAttemptPeriod = 300 }, 60, 40],
    ]
    error_message = "The container differs."
  }
}

run "empty_log_configuration_is_none" {
  command = plan

  variables {
    log_configuration = {}
  }

  assert {
    condition     = !can(jsondecode(aws_ecs_task_definition.this.container_definitions)[0].logConfiguration)
    error_message = "ECS refuses a log configuration without driver."
  }
}

run "nulls_in_members_are_as_absent" {
  command = plan

  variables {
    http_config = { port = null, https = null }
    grpc_config = { port = null }
    environment = { A = "1", B = null }
    secrets     = { C = null }
  }

  assert {
    condition = jsondecode({ for e in jsondecode(aws_ecs_task_definition.this.container_definitions)[0].environment : e.name => e.value }["CONSUL_ECS_CONFIG_JSON"]).consulServers == {
      hosts = "consul.example.com", skipServerWatch = false, defaults = { tls = false, tlsServerName = "" }, http = { port = 8500, https = false }, grpc = { port = 8502 }
    }
    error_message = aws_ecs_task_definition.this.container_definitions
  }

  assert {
    condition     = [for c in [jsondecode(aws_ecs_task_definition.this.container_definitions)[0]] : [c.environment[*].name, c.secrets[*].name]] == [[["A", "CONSUL_ECS_CONFIG_JSON"], ["CONSUL_HTTP_TOKEN"]]]
    error_message = aws_ecs_task_definition.this.container_definitions
  }
}

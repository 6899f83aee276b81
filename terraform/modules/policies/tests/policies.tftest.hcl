# What the execution role may do for the containers of a task.
provider "aws" {
  region = "us-east-1"
}

provider "aws" {
  alias  = "china"
  region = "cn-north-1"
}

provider "aws" {
  alias  = "government"
  region = "us-gov-west-1"
}

variables {
  container_definitions = [
    {
      name = "web", image = "web:1"
      logConfiguration = {
        logDriver     = "awslogs"
        options       = { "awslogs-group" = "/ecs/web", "awslogs-region" = "eu-west-1", "awslogs-create-group" = "true", "awslogs-stream-prefix" = "web" }
        secretOptions = null
      }
      secrets = [
        { name = "CA", valueFrom = "arn:aws:secretsmanager:us-east-1:123456789012:secret:ca-AbCdEf" },
        { name = "KEY", valueFrom = "arn:aws:secretsmanager:us-east-1:123456789012:secret:keys-AbCdEf:gossip::" },
        { name = "A", valueFrom = "arn:aws:ssm:us-east-1:123456789012:parameter/a" },
      ]
    },
    { name = "router", image = "router:1", firelensConfiguration = { type = "fluentbit", options = { "config-file-type" = "s3", "config-file-value" = "arn:aws:s3:::routers/shop/fluent.conf" } }, repositoryCredentials = { credentialsParameter = "arn:aws:secretsmanager:us-east-1:123456789012:secret:registry-AbCdEf" } },
    { name = "splunk", image = "splunk:1", secrets = null, logConfiguration = { logDriver = "splunk", secretOptions = [{ name = "splunk-token", valueFrom = "/shop/splunk" }] } },
    { name = "bare", image = "bare:1", logConfiguration = { logDriver = "awslogs", options = { "awslogs-group" = "/ecs/bare" } }, secrets = [{ name = "B", valueFrom = "/shop/splunk" }], environmentFiles = null },
    { name = "files", image = "files:1", environmentFiles = [{ type = "s3", value = "arn:aws:s3:::settings/shop/web.env" }, { type = "s3", value = "arn:aws:s3:::settings/all.env" }] },
    { name = "local", image = "router:1", firelensConfiguration = { type = "fluentbit", options = { "config-file-type" = "file", "config-file-value" = "/fluent.conf" } } },
    { name = "named", image = "registry.example.com/named:1", repositoryCredentials = { credentialsParameter = "shop/registry" } },
    { name = "same", image = "same:1", environmentFiles = [{ type = "s3", value = "arn:aws:s3:::settings/all.env" }] },
  ]
}

run "execution_role_reads_what_the_containers_name" {
  command = plan

  variables {
    secrets             = ["arn:aws:secretsmanager:us-east-1:123456789012:secret:volume-AbCdEf"]
    kms_key_arns        = ["arn:aws:kms:us-east-1:123456789012:key/1"]
    ecr_repository_arns = ["arn:aws:ecr:us-east-1:123456789012:repository/web"]
  }

  assert {
    condition = jsondecode(output.execution) == {
      Version = "2012-10-17"
      Statement = [
        { Action = ["logs:CreateLogStream", "logs:PutLogEvents"], Effect = "Allow", Resource = ["arn:aws:logs:eu-west-1:123456789012:log-group:/ecs/web:*", "arn:aws:logs:us-east-1:123456789012:log-group:/ecs/bare:*"] },
        { Action = ["logs:CreateLogGroup"], Effect = "Allow", Resource = ["arn:aws:logs:eu-west-1:123456789012:log-group:/ecs/web", "arn:aws:logs:eu-west-1:123456789012:log-group:/ecs/web:*"] },
        { Action = ["secretsmanager:GetSecretValue"], Effect = "Allow", Resource = [
          "arn:aws:secretsmanager:us-east-1:123456789012:secret:ca-AbCdEf",
          "arn:aws:secretsmanager:us-east-1:123456789012:secret:keys-AbCdEf",
          "arn:aws:secretsmanager:us-east-1:123456789012:secret:volume-AbCdEf",
          "arn:aws:secretsmanager:us-east-1:123456789012:secret:registry-AbCdEf",
          "arn:aws:secretsmanager:us-east-1:123456789012:secret:shop/registry-??????",
        ] },
        { Action = ["ssm:GetParameters"], Effect = "Allow", Resource = ["arn:aws:ssm:us-east-1:123456789012:parameter/a", "arn:aws:ssm:us-east-1:123456789012:parameter/shop/splunk"] },
        { Action = ["s3:GetObject"], Effect = "Allow", Resource = ["arn:aws:s3:::settings/shop/web.env", "arn:aws:s3:::settings/all.env", "arn:aws:s3:::routers/shop/fluent.conf"] },
        { Action = ["s3:GetBucketLocation"], Effect = "Allow", Resource = ["arn:aws:s3:::settings", "arn:aws:s3:::routers"] },
        { Action = ["kms:Decrypt"], Effect = "Allow", Resource = ["arn:aws:kms:us-east-1:123456789012:key/1"] },
        { Action = ["ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage"], Effect = "Allow", Resource = ["arn:aws:ecr:us-east-1:123456789012:repository/web"] },
        { Action = ["ecr:GetAuthorizationToken"], Effect = "Allow", Resource = ["*"] },
      ]
    }
    error_message = output.execution
  }
}

run "without_logs_and_secrets_it_may_only_sign_in_at_ecr" {
  command = plan

  variables {
    container_definitions = [{ name = "web", image = "web:1" }]
  }

  assert {
    condition     = jsondecode(output.execution).Statement == [{ Action = ["ecr:GetAuthorizationToken"], Effect = "Allow", Resource = ["*"] }]
    error_message = output.execution
  }
}

run "only_ecs_tasks_are_trusted" {
  command = plan

  assert {
    condition = jsondecode(output.trust) == { Version = "2012-10-17", Statement = [{
      Action    = "sts:AssumeRole"
      Effect    = "Allow"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Condition = {
        StringEquals = { "aws:SourceAccount" = "123456789012" }
        ArnLike      = { "aws:SourceArn" = "arn:aws:ecs:us-east-1:123456789012:*" }
      }
    }] }
    error_message = output.trust
  }
}

run "tasks_of_every_account_are_trusted" {
  command = plan

  variables {
    restrict_role_trust = false
  }

  assert {
    condition = jsondecode(output.trust) == { Version = "2012-10-17", Statement = [
      { Action = "sts:AssumeRole", Effect = "Allow", Principal = { Service = "ecs-tasks.amazonaws.com" } }
    ] }
    error_message = output.trust
  }
}

run "arns_in_china" {
  command = plan

  providers = {
    aws = aws.china
  }

  assert {
    condition = flatten([for s in jsondecode(output.execution).Statement : s.Resource if contains(["logs:CreateLogStream", "ssm:GetParameters"], s.Action[0])]) == [
      "arn:aws-cn:logs:eu-west-1:123456789012:log-group:/ecs/web:*",
      "arn:aws-cn:logs:cn-north-1:123456789012:log-group:/ecs/bare:*",
      "arn:aws:ssm:us-east-1:123456789012:parameter/a",
      "arn:aws-cn:ssm:cn-north-1:123456789012:parameter/shop/splunk",
    ]
    error_message = output.execution
  }
  assert {
    condition     = jsondecode(output.trust).Statement[0].Principal.Service == "ecs-tasks.amazonaws.com"
    error_message = "the principal of ECS tasks is the same in all partitions"
  }
  assert {
    condition     = jsondecode(output.trust).Statement[0].Condition.ArnLike["aws:SourceArn"] == "arn:aws-cn:ecs:cn-north-1:123456789012:*"
    error_message = output.trust
  }
}

run "arns_in_the_government_cloud" {
  command = plan

  providers = {
    aws = aws.government
  }

  assert {
    condition     = strcontains(output.execution, "arn:aws-us-gov:ssm:us-gov-west-1:123456789012:parameter/shop/splunk")
    error_message = output.execution
  }
}

# Settings of the task and its containers that earlier modules do not have.

variables {
  ecs_cluster_arn = "arn:aws:ecs:us-east-1:123456789012:cluster/mesh"
  vpc_id          = "vpc-1"
  subnet_ids      = ["subnet-1"]
}

run "placement_on_ec2" {
  command = plan

  variables {
    requires_compatibilities   = ["EC2"]
    placement_constraints      = [{ type = "memberOf", expression = "attribute:ecs.instance-type =~ m7g.*" }]
    ordered_placement_strategy = [{ type = "spread", field = "attribute:ecs.availability-zone" }]
    skip_destroy               = true
  }

  assert {
    condition     = one(aws_ecs_task_definition.this.placement_constraints).expression == "attribute:ecs.instance-type =~ m7g.*" && aws_ecs_task_definition.this.skip_destroy
    error_message = "The task definition differs."
  }

  assert {
    condition     = aws_ecs_service.this.ordered_placement_strategy[0].field == "attribute:ecs.availability-zone"
    error_message = "The service differs."
  }
}

run "containers_are_restarted_timed_and_locked_down" {
  command = plan

  variables {
    launch_type                        = "FARGATE"
    tls                                = true
    generate_ca                        = false
    ca_cert_arn                        = "arn:aws:secretsmanager:us-east-1:123456789012:secret:cert-AbCdEf"
    ca_key_arn                         = "arn:aws:secretsmanager:us-east-1:123456789012:secret:key-AbCdEf"
    ephemeral_storage                  = 40
    start_timeout                      = 90
    stop_timeout                       = 60
    restart_policy                     = { ignored_exit_codes = [3], restart_attempt_period = 120 }
    readonly_root_filesystem           = true
    drop_capabilities                  = ["NET_RAW"]
    environment                        = { GOGC = "50" }
    secrets                            = { EXTRA = "/mesh/extra" }
    additional_execution_role_policies = ["arn:aws:iam::123456789012:policy/extra"]
  }

  assert {
    condition     = aws_ecs_task_definition.this.ephemeral_storage[0].size_in_gib == 40
    error_message = "The storage differs."
  }

  assert {
    condition = [for c in jsondecode(aws_ecs_task_definition.this.container_definitions) : [c.name, try(c.startTimeout, 0), try(c.stopTimeout, 0), try(c.restartPolicy, null)]] == [
      ["tls-init", 90, 0, null],
      ["consul-server", 0, 60, { enabled = true, ignoredExitCodes = [3], restartAttemptPeriod = 120 }],
    ]
    error_message = aws_ecs_task_definition.this.container_definitions
  }

  assert {
    condition = alltrue([for c in jsondecode(aws_ecs_task_definition.this.container_definitions) :
      c.readonlyRootFilesystem && c.linuxParameters == { initProcessEnabled = true, capabilities = { add = [], drop = ["NET_RAW"] } }
    ])
    error_message = aws_ecs_task_definition.this.container_definitions
  }

  # What the scripts write to.
  assert {
    condition = [for c in jsondecode(aws_ecs_task_definition.this.container_definitions) : c.mountPoints[*].containerPath] == [
      ["/consul"], ["/consul", "/opt/consul"],
    ]
    error_message = aws_ecs_task_definition.this.container_definitions
  }

  assert {
    condition = [for c in [jsondecode(aws_ecs_task_definition.this.container_definitions)[1]] : [c.environment[1], c.secrets]] == [
      [{ name = "GOGC", value = "50" }, [{ name = "EXTRA", valueFrom = "/mesh/extra" }]],
    ]
    error_message = aws_ecs_task_definition.this.container_definitions
  }

  assert {
    condition = contains(flatten([for s in jsondecode(aws_iam_role_policy.execution.policy).Statement : s.Resource]), "arn:aws:ssm:us-east-1:123456789012:parameter/mesh/extra") && (
    aws_iam_role_policy_attachment.execution[0].policy_arn == "arn:aws:iam::123456789012:policy/extra")
    error_message = "The execution role differs."
  }
}

run "firelens" {
  command = plan

  variables {
    extra_container_definitions = [{ name = "router", image = "fluent-bit:1", essential = true, firelensConfiguration = { type = "fluentbit" }, dependsOn = null, linuxParameters = { capabilities = { drop = ["ALL"] } } }]
    log_configuration           = { logDriver = "awsfirelens", options = { Name = "stdout" }, secretOptions = [{ name = "key", valueFrom = "/mesh/key" }] }
  }

  assert {
    condition     = [for c in jsondecode(aws_ecs_task_definition.this.container_definitions) : [c.name, try(c.logConfiguration.logDriver, "")]] == [["consul-server", "awsfirelens"], ["router", ""]]
    error_message = aws_ecs_task_definition.this.container_definitions
  }

  assert {
    condition     = strcontains(aws_iam_role_policy.execution.policy, "parameter/mesh/key")
    error_message = "The execution role cannot read the log driver's secret."
  }
}

run "names_and_exec_that_cannot_work" {
  command = plan

  variables {
    extra_container_definitions = [{ name = "tls-init", image = "i" }]
    readonly_root_filesystem    = true
    enable_execute_command      = true
  }

  expect_failures = [var.extra_container_definitions, var.readonly_root_filesystem]
}

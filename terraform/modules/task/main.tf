locals {
  volumes = { for v in var.volume_configurations : v.name => v }

  volume_keys = {
    docker_volume_configuration                  = ["autoprovision", "driver", "driver_opts", "labels", "scope"]
    efs_volume_configuration                     = ["file_system_id", "root_directory", "transit_encryption", "transit_encryption_port", "authorization_config"]
    fsx_windows_file_server_volume_configuration = ["file_system_id", "root_directory", "authorization_config"]
  }
  authorization_keys = { efs_volume_configuration = ["access_point_id", "iam"], fsx_windows_file_server_volume_configuration = ["credentials_parameter", "domain"] }
  # The objects of each volume, by their path, with the keys that are set and those that they take.
  volume_objects = flatten([for v in var.volume_configurations : concat(
    [{ path = v.name, keys = [for k in keys(v) : k if v[k] != null], takes = concat(["name", "host_path"], keys(local.volume_keys)) }],
    flatten([for part, takes in local.volume_keys : [for o in try(v[part], null)[*] : { path = "${v.name}.${part}", keys = try([for k in keys(o) : k if o[k] != null], []), takes = takes }]]),
    flatten([for part, takes in local.authorization_keys : [for o in try(v[part].authorization_config, null)[*] : { path = "${v.name}.${part}.authorization_config", keys = try([for k in keys(o) : k if o[k] != null], []), takes = takes }]]),
  )])
  unknown_volume_keys = [for o in local.volume_objects : "${o.path} accepts only ${join(", ", o.takes)}, and not ${join(", ", setsubtract(o.keys, o.takes))}." if length(setsubtract(o.keys, o.takes)) > 0]
}

resource "aws_ecs_task_definition" "this" {
  family                   = var.name
  requires_compatibilities = var.requires_compatibilities
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory
  task_role_arn            = local.task_role.arn
  execution_role_arn       = local.execution_role.arn
  container_definitions    = jsonencode(var.container_definitions)
  skip_destroy             = var.skip_destroy
  tags                     = var.tags

  dynamic "runtime_platform" {
    for_each = var.runtime_platform[*]

    content {
      cpu_architecture        = runtime_platform.value.cpu_architecture
      operating_system_family = runtime_platform.value.operating_system_family
    }
  }

  dynamic "ephemeral_storage" {
    for_each = var.ephemeral_storage[*]

    content {
      size_in_gib = ephemeral_storage.value
    }
  }

  dynamic "placement_constraints" {
    for_each = var.placement_constraints

    content {
      type       = placement_constraints.value.type
      expression = placement_constraints.value.expression
    }
  }

  dynamic "volume" {
    for_each = var.volumes

    content {
      name      = volume.value
      host_path = try(local.volumes[volume.value].host_path, null)

      dynamic "docker_volume_configuration" {
        for_each = try(local.volumes[volume.value].docker_volume_configuration, null)[*]

        content {
          autoprovision = try(docker_volume_configuration.value.autoprovision, null)
          driver        = try(docker_volume_configuration.value.driver, null)
          driver_opts   = try(docker_volume_configuration.value.driver_opts, null)
          labels        = try(docker_volume_configuration.value.labels, null)
          scope         = try(docker_volume_configuration.value.scope, null)
        }
      }

      dynamic "efs_volume_configuration" {
        for_each = try(local.volumes[volume.value].efs_volume_configuration, null)[*]

        content {
          file_system_id          = efs_volume_configuration.value.file_system_id
          root_directory          = try(efs_volume_configuration.value.root_directory, null)
          transit_encryption      = try(efs_volume_configuration.value.transit_encryption, null)
          transit_encryption_port = try(efs_volume_configuration.value.transit_encryption_port, null)

          dynamic "authorization_config" {
            for_each = try(efs_volume_configuration.value.authorization_config, null)[*]

            content {
              access_point_id = try(authorization_config.value.access_point_id, null)
              iam             = try(authorization_config.value.iam, null)
            }
          }
        }
      }

      dynamic "fsx_windows_file_server_volume_configuration" {
        for_each = try(local.volumes[volume.value].fsx_windows_file_server_volume_configuration, null)[*]

        content {
          file_system_id = fsx_windows_file_server_volume_configuration.value.file_system_id
          root_directory = fsx_windows_file_server_volume_configuration.value.root_directory

          authorization_config {
            credentials_parameter = fsx_windows_file_server_volume_configuration.value.authorization_config.credentials_parameter
            domain                = fsx_windows_file_server_volume_configuration.value.authorization_config.domain
          }
        }
      }
    }
  }

  lifecycle {
    precondition {
      condition     = length(local.unknown_volume_keys) == 0
      error_message = "In volumes, ${nonsensitive(join(" ", local.unknown_volume_keys))}"
    }
  }
}

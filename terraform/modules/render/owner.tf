# Which containers of the mesh cannot use the shared volume: it has the owner of its directory in
# the image that mounts it first, and the default image has /consul alone.
locals {
  gate_role = local.agent ? "install" : "mesh_init"
  readers   = concat(["proxy"], local.agent ? ["health_sync"] : [])
  # Which containers there are, and results of try and can, may be unknown before the apply.
  given  = { for role, settings in var.sidecars : role => settings.user if try(settings.user, null) != null }
  users  = length(local.given) == 0 ? {} : { for role in local.roles : role => split(":", lookup(local.given, role, lookup(local.given, "all", ""))) if contains(keys(local.given), role) || contains(keys(local.given), "all") }
  strong = ["ALL", "DAC_OVERRIDE"]

  owner_warnings = local.bootstrap_dir != "/consul" ? [
    for role, name in local.names : "Container ${name} runs as user ${local.mesh_user}, and cannot ${local.transparent ? "read" : "write"} the shared volume at ${local.bootstrap_dir}, which belongs to root unless the image of container ${local.gate} has this directory: remove bootstrapDir, or name the directory's owner in that image as user of ${local.gate_role} in sidecars."
    if role == (local.transparent ? "health_sync" : local.gate_role) && !contains(keys(local.users), local.gate_role)
    ] : [
    for role, user in local.users : "Container ${local.names[role]} runs as user ${join(":", user)}, and cannot ${contains(local.readers, role) ? "read" : "write"} the shared volume, which belongs to ${local.mesh_user}: remove user from sidecars for it."
    if !anytrue([
      contains(["5996", "consul-ecs"], user[0]),
      contains(local.readers, role) && try(user[1], "") == "5996",
      contains(["0", "root"], user[0]) && (length(setintersection(local.add[role], local.strong)) > 0 || length(setintersection(local.drop[role], local.strong)) == 0),
    ])
  ]
}

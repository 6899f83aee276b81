output "container_definitions" {
  description = "The same containers with the defaults that ECS sets, without nulls in the first two levels."
  value = [for c in local.filled : {
    for k, v in c : k => try(
      { for name in keys(v) : name => v[name] if v[name] != null },
      [for item in v : { for name in keys(item) : name => item[name] if item[name] != null }],
      v,
    ) if v != null
  }]
}

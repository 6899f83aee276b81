# Which applications app-entrypoint precedes: those whose program is known. The rules are those
# of `consul-ecs admit`.
locals {
  yes    = ["true", "True", "TRUE", "t", "T", "1"]
  no     = ["false", "False", "FALSE", "f", "F", "0"]
  choice = { for c in var.container_definitions : c.name => try(coalesce(c.dockerLabels["consul.hashicorp.com/wrap"]), "")... }

  # A word that is a program whatever the image's ENTRYPOINT is, a file that another program
  # reads, and a program that must be process 1.
  shell    = "^(?:|a|ba|da|fi|k|mk|z)sh$"
  path     = "^/[^ \t\n;&|<>$*]*[^ \t\n;&|<>$*/]$"
  document = "\\.(?i:cfg|cjs|conf|config|css|dll|env|ex|exs|hcl|html|ini|jar|js|json|jsonnet|lua|mjs|php|pl|properties|py|r|rb|sql|tf|toml|ts|txt|war|wasm|xml|ya?ml)$"
  datadog  = "(?i:(?:^|/)datadog(?:/|hq/|-)agent(?:[:@][^/]*)?$)"
  init     = "^(?:init|openrc-init|runit|runit-init|systemd|/+(?:(?:usr/+)?s?bin/+)?(?:init|openrc-init|runit|runit-init)|/+(?:usr/+)?(?:s?bin|lib/+systemd)/+systemd|/+linuxrc|/+package/+admin/+s6-overlay.*)$"

  # What follows an app-entrypoint that the user wrote, or the entryPoint as it is. Of [""], by
  # which ECS runs the command without the image's ENTRYPOINT, nothing follows.
  behind = { for c in local.described : c.name => [
    for w in(c.wrapped_by_hand == "entryPoint" ? slice(c.entry, 2 + length(flatten(local.hand_flags[c.name][0])), length(c.entry)) : c.entry) :
    w if !(w == "" && length(c.entry) == 1)
  ]... }

  # The first words of each command line, in which a program that must be process 1 is looked
  # for. One word that is unknown before the apply would make the outcome unknown. Of BusyBox
  # they are those of its applet.
  shells = { for c in local.described : c.name => [for i, w in slice(c.command, 0, min(2, length(c.command))) : i if can(regex(local.shell, basename(w)))]... }
  words = { for c in local.described : c.name => concat(
    local.behind[c.name][0],
    slice(c.command, 0, min(length(c.command), length(local.behind[c.name][0]) > 0 ? 1 : length(local.shells[c.name][0]) > 0 ? local.shells[c.name][0][0] + 5 : 2)),
  )... }
  heads = { for name, of in local.words : name => try(basename(of[0][0]) == "busybox" && of[0][1] != "init", false) ? slice(of[0], 1, length(of[0])) : of[0]... }
  # The words that a shell may execute: those of its script, and the arguments of the script.
  scripts = { for c in local.described : c.name => flatten([
    for i, w in [for w in try(slice(local.heads[c.name][0], 1, length(local.heads[c.name][0])), []) : w if !startswith(w, "-")] :
    i == 0 ? regexall("[^ \t\n;&|()\"']+", w) : [w]
  ])... }
  inits = { for c in local.described : c.name => (
    can(regex(local.init, local.heads[c.name][0][0])) || try(basename(local.heads[c.name][0][0]) == "busybox" && local.heads[c.name][0][1] == "init", false) ? "certain" :
    can(regex(local.shell, basename(local.heads[c.name][0][0]))) ? (
      anytrue([for i, w in local.scripts[c.name][0] : can(regex(local.init, w)) && (i == 0 || startswith(w, "/") || try(local.scripts[c.name][0][i - 1] == "exec", false))]) ? "possible" : ""
    ) :
    # The script of Datadog's agent executes /init of s6-overlay. Other images may be unknown.
    try(local.heads[c.name][0][0] == "/bin/entrypoint.sh", false) ? (can(regex(local.datadog, c.container.image)) ? "possible" : "") :
    anytrue([for i, w in local.heads[c.name][0] : i > 0 && startswith(w, "/") && can(regex(local.init, w))]) ? "possible" : ""
  )... }

  verdicts = { for c in local.applications : c.name => (
    c.wrapped_by_hand == "command" ? "wrap" :
    contains(local.no, local.choice[c.name][0]) ? "left" :
    length(local.behind[c.name][0]) + length(c.command) == 0 ? "neither" :
    local.inits[c.name][0] == "certain" ? "init" :
    local.inits[c.name][0] == "possible" && !contains(local.yes, local.choice[c.name][0]) ? "possible_init" :
    length(local.behind[c.name][0]) > 0 ? "wrap" :
    startswith(c.command[0], "-") ? "options" :
    contains(local.yes, local.choice[c.name][0]) ? "wrap" :
    c.wrapped_by_hand == "entryPoint" || length(c.entry) > 0 ? "wrap_and_mark" :
    can(regex(local.shell, c.command[0])) || (can(regex(local.path, c.command[0])) && !can(regex(local.document, c.command[0]))) ? "wrap_and_warn" :
    "arguments"
  ) if !local.gateway }

  unwrapped = [for name, verdict in local.verdicts : name if !startswith(verdict, "wrap")]

  # Why a container is not wrapped, and what to do about it.
  label = "the docker label consul.hashicorp.com/wrap"
  ways  = "write the image's ENTRYPOINT as entryPoint; if it has none, set ${local.label} to true; false leaves the container as it is"
  reasons = {
    neither       = ["it has neither entryPoint nor command", "write the image's ENTRYPOINT as entryPoint and its CMD as command"]
    init          = ["its program must be process 1 of the container", "set ${local.label} to false to accept that"]
    possible_init = ["it may execute a program that must be process 1 of the container", "set ${local.label} to false to accept that, or to true if it does not"]
    options       = ["its command is options of its image's ENTRYPOINT", "write that ENTRYPOINT as entryPoint"]
    arguments     = ["its command may be arguments of its image's ENTRYPOINT", local.ways]
  }
  warnings = concat(local.owner_warnings, [for name, verdict in local.verdicts : (
    verdict == "wrap_and_warn" ?
    "Container ${name} has a command and no entryPoint: the ENTRYPOINT of its image is not run any more (${local.ways})." :
    "Container ${name} is not wrapped, because ${local.reasons[verdict][0]}: it starts when the proxy is healthy, and does not delay its shutdown (${local.reasons[verdict][1]})."
  ) if verdict == "wrap_and_warn" || contains(keys(local.reasons), verdict)])
}

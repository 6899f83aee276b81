locals {
  # Names of load balancers have up to 32 letters, digits and '-', and do not begin with
  # "internal-". Another name is cut, and ends with a hash.
  lb_label = replace(local.name, "_", "-")
  lb_name = (
    var.lb_name != null ? var.lb_name :
    length(local.lb_label) <= 32 && !startswith(local.lb_label, "internal-") ? local.lb_label :
    "${substr(replace(local.lb_label, "/^internal-/", "int-"), 0, 23)}-${substr(sha256(local.lb_label), 0, 8)}"
  )

  create_security_group = var.lb_enabled && var.lb_create_security_group
  modify_security_group = var.lb_enabled && var.lb_modify_security_group
  admit                 = local.create_security_group || local.modify_security_group
  client_blocks         = var.lb_ingress_rule_cidr_blocks == null ? ["0.0.0.0/0"] : var.lb_ingress_rule_cidr_blocks
  # Health checks come from the load balancer's subnets. All addresses include them, but
  # whether a list has all is not known in the plan when one of its blocks is not.
  admitted_subnets  = local.admit && var.lb_ingress_rule_cidr_blocks != null ? length(var.lb_subnets) : 0
  security_group_id = local.create_security_group ? one(aws_security_group.this[*].id) : var.lb_modify_security_group_id
}

# The load balancer has an address in each of its subnets, which may be of any block of the VPC.
data "aws_subnet" "lb" {
  count = local.admitted_subnets

  id = var.lb_subnets[count.index]
}

resource "aws_lb" "this" {
  count = var.lb_enabled ? 1 : 0

  name               = local.lb_name
  internal           = false
  load_balancer_type = "network"
  subnets            = var.lb_subnets
  tags               = var.service_tags
}

resource "aws_lb_target_group" "this" {
  count = var.lb_enabled ? 1 : 0

  name                 = local.lb_name
  vpc_id               = var.lb_vpc_id
  port                 = local.lan_port
  protocol             = "TCP"
  target_type          = "ip"
  deregistration_delay = 120
  # Otherwise the tasks' security group sees the load balancer's addresses alone.
  preserve_client_ip = "true"
  tags               = var.service_tags

  health_check {
    protocol = "TCP"
  }
}

resource "aws_lb_listener" "this" {
  count = var.lb_enabled ? 1 : 0

  load_balancer_arn = aws_lb.this[0].arn
  port              = local.wan_port
  protocol          = "TCP"

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.this[0].arn
  }
}

resource "aws_security_group" "this" {
  count = local.create_security_group ? 1 : 0

  name        = local.lb_name
  description = "Gateway ${substr(local.name, 0, 200)} behind its load balancer"
  vpc_id      = var.lb_vpc_id
  tags        = var.service_tags
}

resource "aws_vpc_security_group_egress_rule" "this" {
  count = local.create_security_group ? 1 : 0

  security_group_id = aws_security_group.this[0].id
  description       = "Everything"
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}

# Connections arrive on the tasks' port, whatever that of the load balancer is.
resource "aws_vpc_security_group_ingress_rule" "clients" {
  count = local.admit ? length(local.client_blocks) : 0

  security_group_id = local.security_group_id
  description       = "Clients of the gateway"
  ip_protocol       = "tcp"
  from_port         = local.lan_port
  to_port           = local.lan_port
  cidr_ipv4         = strcontains(local.client_blocks[count.index], ":") ? null : local.client_blocks[count.index]
  cidr_ipv6         = strcontains(local.client_blocks[count.index], ":") ? local.client_blocks[count.index] : null
}

# One for each subnet, whose block may be unknown in the plan. EC2 refuses a rule that
# equals one of the clients' rules. Those cover the subnet then, so its rule is reduced to
# the network's address, which no host has.
resource "aws_vpc_security_group_ingress_rule" "health_checks" {
  count = local.admitted_subnets

  security_group_id = local.security_group_id
  description       = "Health checks of the load balancer"
  ip_protocol       = "tcp"
  from_port         = local.lan_port
  to_port           = local.lan_port
  cidr_ipv4 = (
    contains(local.client_blocks, data.aws_subnet.lb[count.index].cidr_block) ?
    "${cidrhost(data.aws_subnet.lb[count.index].cidr_block, 0)}/32" : data.aws_subnet.lb[count.index].cidr_block
  )
}

output "ecs_service_name" {
  description = "Name of the ECS service."
  value       = aws_ecs_service.this.name
}

output "security_group_id" {
  description = "Security group of the server: add a rule for each client."
  value       = aws_security_group.server.id
}

output "server_dns" {
  description = "DNS name of the server in the VPC."
  value       = local.server_dns
}

output "lb_dns_name" {
  description = "DNS name of the load balancer; null without."
  value       = one(aws_lb.this[*].dns_name)
}

output "lb_security_group_id" {
  description = "Security group of the load balancer; null without."
  value       = one(aws_security_group.lb[*].id)
}

output "ca_cert_arn" {
  description = "Secret with the CA's certificate; null without `tls`."
  value       = var.tls ? local.ca_cert_arn : null
}

output "ca_key_arn" {
  description = "Secret with the CA's key; null without `tls`."
  value       = var.tls ? local.ca_key_arn : null
}

output "gossip_key_arn" {
  description = "Secret with the gossip key; null without `gossip_encryption_enabled`."
  value       = var.gossip_encryption_enabled ? local.gossip_key_arn : null
}

output "bootstrap_token_secret_arn" {
  description = "Secret with the bootstrap token; null without `acls`, empty in a secondary datacenter without `bootstrap_token_arn`."
  value       = var.acls ? local.bootstrap_token_arn : null
}

output "bootstrap_token_id" {
  description = "The bootstrap token; null without `acls`."
  value       = var.acls ? local.token : null
  sensitive   = true
}

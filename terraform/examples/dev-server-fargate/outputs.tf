output "consul_server" {
  description = "DNS name of the Consul server in the VPC."
  value       = module.dev_server.server_dns
}

output "bootstrap_token" {
  description = "The bootstrap token: terraform output -raw bootstrap_token."
  value       = module.dev_server.bootstrap_token_id
  sensitive   = true
}

output "gateways" {
  description = "Addresses of the gateways for other datacenters."
  value       = { for dc, gateway in module.gateway : dc => "${gateway.wan_address}:${gateway.wan_port}" }
}

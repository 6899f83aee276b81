output "url" {
  description = "Address of the load balancer; the certificate is for a name of yours that points to it."
  value       = "https://${aws_lb.this.dns_name}"
}

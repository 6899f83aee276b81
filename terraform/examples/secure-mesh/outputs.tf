output "security_group_id" {
  description = "Security group of the tasks: the Consul servers admit it at ports 8501 and 8503."
  value       = aws_security_group.tasks.id
}

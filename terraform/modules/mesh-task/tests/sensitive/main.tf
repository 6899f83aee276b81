# A definition with a password, which makes all of it sensitive.
variable "user" {
  type = string
}

module "web" {
  source = "../.."

  consul_ecs_image           = "registry.example.com/consul-ecs:1.0.0-beta.1"
  family                     = "web"
  port                       = 8080
  consul_server_hosts        = "consul.example.com"
  consul_agent_configuration = sensitive("log_level = \"debug\"")
  container_definitions      = sensitive([{ name = "web", image = "web:1", user = var.user, environment = [{ name = "PASSWORD", value = "secret" }] }])
}

# A root module before the upgrade. Addresses in the older module are invented.
module "web" {
  source = "./older"
}

terraform {
  # As the modules that use this one.
  required_version = ">= 1.9"
}

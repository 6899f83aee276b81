terraform {
  # Optional attributes with defaults, and validations that read other variables.
  required_version = ">= 1.9"
}

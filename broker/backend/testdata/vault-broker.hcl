# What the token of token-broker needs with backend vault. Its holder can give any
# policy but root to anyone: create-orphan takes every policy name.
path "auth/token/create-orphan" {
  capabilities = ["update", "sudo"]
}
path "auth/token/revoke-accessor" {
  capabilities = ["update"]
}
path "auth/token/lookup-accessor" {
  capabilities = ["update"]
}
path "sys/policies/acl/*" {
  capabilities = ["read"]
}

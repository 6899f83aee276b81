# What the token of token-broker needs with backend vault. With sudo it may choose the period
# of a token; the token role bounds the policies.
path "auth/token/create/token-broker" {
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

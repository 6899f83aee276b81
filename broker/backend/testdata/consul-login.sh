# Sets up Consul for token-broker with backend consul-login. Run it with CONSUL_HTTP_ADDR
# and a CONSUL_HTTP_TOKEN that has acl = "write"; give broker.key to the broker only.
set -eu
openssl genpkey -algorithm ed25519 -out broker.key
openssl pkey -in broker.key -pubout -out broker.pub

cat > method.json <<JSON
{
  "JWTValidationPubKeys": ["$(awk '{printf "%s\\n", $0}' broker.pub)"],
  "BoundIssuer": "consul-ecs-token-broker",
  "BoundAudiences": ["consul"],
  "ListClaimMappings": {"policies": "policies"}
}
JSON

# One auth method for each life of tokens, one binding rule for each permitted policy.
for ttl in 1h 72h; do
  consul acl auth-method create -type jwt -name "token-broker-$ttl" \
    -max-token-ttl "$ttl" -token-locality local -config @method.json
  for policy in web-config web-queue; do
    consul acl binding-rule create -method "token-broker-$ttl" \
      -bind-type policy -bind-name "$policy" -selector "\"$policy\" in list.policies"
  done
done

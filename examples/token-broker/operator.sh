# What an operator does once: the policy that the application needs, and the auth method
# by which the broker, which has no privilege, logs in for tasks. Consul gives a policy to
# tasks only if it has a binding rule.
until consul kv get public/login.pub > /tmp/login.pub 2>/dev/null; do sleep 1; done
consul kv put app/greeting "hello from Consul"
consul acl policy create -name=app-config -rules='key_prefix "app/" { policy = "read" }'
cat > /tmp/method.json <<JSON
{
  "JWTValidationPubKeys": ["$(awk '{printf "%s\\n", $0}' /tmp/login.pub)"],
  "BoundIssuer": "consul-ecs-token-broker",
  "BoundAudiences": ["consul"],
  "ListClaimMappings": {"policies": "policies"}
}
JSON
consul acl auth-method create -type=jwt -name=token-broker-1m -max-token-ttl=1m \
  -token-locality=local -config=@/tmp/method.json
consul acl binding-rule create -method=token-broker-1m -bind-type=policy \
  -bind-name=app-config -selector='"app-config" in list.policies'
# Tasks without a token read the broker's certificate.
consul acl policy create -name=public -rules='key_prefix "public/" { policy = "read" }'
consul acl token update -id=00000000-0000-0000-0000-000000000002 -policy-name=public

# What an operator does once, with the consul CLI: legacy goes into the catalog, and the
# role of terminating gateways, which the controller has made, may present its identity.
consul services register -name=legacy -address=legacy.gateways.local -port=7070
consul acl policy create -name=legacy -rules='service "legacy" { policy = "write" }'
set -- $(consul acl role read -name=consul-ecs-terminating-gateway-role) # ID: <the ID> ...
consul acl role update -id="$2" -policy-name=legacy

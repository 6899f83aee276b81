# Waits for the broker's certificate. In a deployment it is a secret or parameter of the
# task definition: CONSUL_ECS_BROKER_CACERT_PEM.
until consul kv get public/broker-ca.pem > /consul/broker-ca.tmp 2>/dev/null; do sleep 1; done
mv /consul/broker-ca.tmp /consul/broker-ca.pem

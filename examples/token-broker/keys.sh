# The private keys of the broker are made in its task and stay there. What others need of
# them goes into Consul's KV store: the certificate, which tasks trust, and the key by
# which Consul knows the broker.
cd /tls
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
  -subj /CN=token-broker -addext subjectAltName=DNS:token-broker.tokens.local \
  -config /dev/null -keyout tls-key.pem -out tls.pem
openssl genpkey -algorithm ed25519 -out login-key.pem
openssl pkey -in login-key.pem -pubout -out login.pub
chmod 0640 tls-key.pem login-key.pem
until consul kv put public/broker-ca.pem @tls.pem && consul kv put public/login.pub @login.pub; do sleep 1; done

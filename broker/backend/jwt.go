package backend

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"time"
)

// jwtIssuer and jwtAudience are in every JWT of the broker; the auth method has them as
// BoundIssuer and BoundAudiences.
const (
	jwtIssuer   = "consul-ecs-token-broker"
	jwtAudience = "consul"
)

// jwtLife is how long Consul takes a JWT, and its ClockSkewLeeway more.
const jwtLife = time.Minute

// ReadLoginKey reads the key that signs the JWTs: Ed25519, PKCS #8 in PEM form.
func ReadLoginKey(file string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the key that signs for auth methods: %w", err)
	}
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(ed25519.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil,
		fmt.Errorf("key file %s has no Ed25519 key in PEM form; make one with: openssl genpkey -algorithm ed25519 -out %s", file, file)
}

// signJWT returns the JWT of a grant (RFC 7519) with signature EdDSA (RFC 8037). Consul
// takes Ed25519 keys in JWTValidationPubKeys.
func signJWT(key ed25519.PrivateKey, g Grant, now time.Time) (string, error) {
	r := g.Request
	claims, err := json.Marshal(map[string]any{
		"iss": jwtIssuer, "aud": jwtAudience, "sub": r.Task.ARN, "jti": g.Accessor,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(jwtLife).Unix(),
		"cluster": r.Task.Cluster, "family": r.Task.Family, "request": r.RequestID, "policies": r.Policies,
	})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"EdDSA","typ":"JWT"}`)) + "." + encode(claims)
	return text + "." + encode(ed25519.Sign(key, []byte(text))), nil
}

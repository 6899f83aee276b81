package testkit

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Logins make ACL tokens as a login does, with a description of meta: many in a
// short time, since the auth methods behind them call no server.
type Logins struct {
	consul *Consul
	bearer string
}

// NewLogins makes auth methods of these names, which take any login, and give its
// token the service identity "web".
func NewLogins(c *Consul, methods ...string) (*Logins, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	l := &Logins{consul: c}
	if l.bearer, err = sign(key); err != nil {
		return nil, err
	}
	for _, m := range methods {
		err := l.put("PUT", "/v1/acl/auth-method", map[string]any{
			"Name": m, "Type": "jwt", "Config": map[string]any{"JWTValidationPubKeys": []string{public}},
		}, nil)
		if err != nil {
			return nil, err
		}
		if err := l.put("PUT", "/v1/acl/binding-rule",
			map[string]any{"AuthMethod": m, "BindType": "service", "BindName": "web"}, nil); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Login logs in.
func (l *Logins) Login(method string, meta map[string]string) (accessor, secret string, err error) {
	var token struct{ AccessorID, SecretID string }
	err = l.put("POST", "/v1/acl/login", map[string]any{"AuthMethod": method, "BearerToken": l.bearer, "Meta": meta},
		&token)
	return token.AccessorID, token.SecretID, err
}

func (l *Logins) put(method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, "http://"+l.consul.HTTPAddr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if path != "/v1/acl/login" {
		req.Header.Set("X-Consul-Token", l.consul.Token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s %s: %w", method, path, resp.Status, text, err)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// sign makes a JSON web token that is good for a day.
func sign(key *ecdsa.PrivateKey) (string, error) {
	claims, err := json.Marshal(map[string]any{
		"sub": "task", "iat": time.Now().Add(-time.Minute).Unix(), "exp": time.Now().Add(24 * time.Hour).Unix(),
	})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", err
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

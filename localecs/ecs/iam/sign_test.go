package iam_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
)

const (
	region       = "us-west-2"
	account      = "111122223333"
	signerTaskID = "0f9de17a6465404e8b1b2356dc13c2f8"

	whoAmI  = "Action=GetCallerIdentity&Version=2011-06-15"
	getRole = "Action=GetRole&Version=2010-05-08&RoleName="
	getUser = "Action=GetUser&Version=2010-05-08"
)

// productAPI returns a task role as consul-ecs wants it.
func productAPI() iam.Role {
	return iam.Role{
		Name: "product-api-task", Path: "/consul-ecs/", Account: account,
		Tags: map[string]string{"consul.hashicorp.com.service-name": "product-api", "team": "shop & more"},
	}
}

// issue puts the role and returns a fresh key of a task's session.
func issue(t testing.TB, s *iam.Store, role iam.Role, now time.Time) iam.Key {
	t.Helper()
	s.PutRole(role)
	id, err := s.Issue(role.ARN(), signerTaskID, now)
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.Current(id)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// post returns an unsigned Query API request.
func post(t testing.TB, url, form string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	return req
}

// sign signs the request, whose body is form, with the SDK's signer.
func sign(t testing.TB, req *http.Request, form string, key iam.Key, service, region string,
	at time.Time) *http.Request {
	t.Helper()
	sum := sha256.Sum256([]byte(form))
	creds := aws.Credentials{AccessKeyID: key.AccessKeyID, SecretAccessKey: key.Secret, SessionToken: key.Token}
	if err := v4.NewSigner().SignHTTP(t.Context(), creds, req, hex.EncodeToString(sum[:]), service, region,
		at); err != nil {
		t.Fatal(err)
	}
	return req
}

// bearer builds a login token with the role's entity in it.
func bearer(t testing.TB, stsURL, iamURL string, key iam.Key, roleName string) bearerToken {
	t.Helper()
	now := time.Now()
	entity := sign(t, post(t, iamURL, getRole+roleName), getRole+roleName, key, "iam", "us-east-1", now)
	caller := post(t, stsURL, whoAmI)
	headers, err := json.Marshal(entity.Header)
	if err != nil {
		t.Fatal(err)
	}
	caller.Header.Set("X-Consul-IAM-GetEntity-Method", entity.Method)
	caller.Header.Set("X-Consul-IAM-GetEntity-URL", iamURL)
	caller.Header.Set("X-Consul-IAM-GetEntity-Headers", string(headers))
	caller.Header.Set("X-Consul-IAM-GetEntity-Body", getRole+roleName)
	sign(t, caller, whoAmI, key, "sts", region, now)
	return bearerToken{Method: caller.Method, URL: stsURL, Header: caller.Header, Body: whoAmI}
}

// bearerToken is a bearer before its encoding, for a test to tamper with.
type bearerToken struct {
	Method, URL string
	Header      http.Header
	Body        string
}

func (b bearerToken) encode(t testing.TB) string {
	t.Helper()
	headers, err := json.Marshal(b.Header)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(map[string]string{
		"iam_http_request_method": b.Method,
		"iam_request_url":         base64.StdEncoding.EncodeToString([]byte(b.URL)),
		"iam_request_headers":     base64.StdEncoding.EncodeToString(headers),
		"iam_request_body":        base64.StdEncoding.EncodeToString([]byte(b.Body)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

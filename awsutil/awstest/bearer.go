package awstest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Bearer returns a login of the role, made without package awsutil. It can be used any number of times, since no
// signature is verified.
func (a *AWS) Bearer(ctx context.Context) (string, error) {
	form := "Action=GetRole&RoleName=" + a.Role.Name + "&Version=2010-05-08"
	entity, err := signed(ctx, "iam", "https://iam.amazonaws.com/", form, nil)
	if err != nil {
		return "", err
	}
	headers, err := json.Marshal(entity.Header)
	if err != nil {
		return "", err
	}
	const identity = "Action=GetCallerIdentity&Version=2011-06-15"
	req, err := signed(ctx, "sts", "https://sts.us-east-1.amazonaws.com/", identity, map[string]string{
		"X-Consul-IAM-GetEntity-Method":  entity.Method,
		"X-Consul-IAM-GetEntity-URL":     entity.URL.String(),
		"X-Consul-IAM-GetEntity-Headers": string(headers),
		"X-Consul-IAM-GetEntity-Body":    form,
	})
	if err != nil {
		return "", err
	}
	if headers, err = json.Marshal(req.Header); err != nil {
		return "", err
	}
	encode := base64.StdEncoding.EncodeToString
	bearer, err := json.Marshal(map[string]string{
		"iam_http_request_method": req.Method,
		"iam_request_url":         encode([]byte(req.URL.String())),
		"iam_request_body":        encode([]byte(identity)),
		"iam_request_headers":     encode(headers),
	})
	return string(bearer), err
}

func signed(ctx context.Context, service, url, form string, more map[string]string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	req.Header.Set("Content-Length", strconv.Itoa(len(form)))
	for name, value := range more {
		req.Header.Set(name, value)
	}
	sum := sha256.Sum256([]byte(form))
	return req, v4.NewSigner().SignHTTP(ctx, aws.Credentials{AccessKeyID: "AKIAEXAMPLE", SecretAccessKey: "secret"},
		req, hex.EncodeToString(sum[:]), service, "us-east-1", time.Now())
}

package awsutil

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// Header names that Consul's aws-iam auth method looks for.
const (
	headerServerID      = "X-Consul-IAM-ServerID"
	headerEntityMethod  = "X-Consul-IAM-GetEntity-Method"
	headerEntityURL     = "X-Consul-IAM-GetEntity-URL"
	headerEntityHeaders = "X-Consul-IAM-GetEntity-Headers"
	headerEntityBody    = "X-Consul-IAM-GetEntity-Body"
)

// BearerOptions determine what a bearer proves.
type BearerOptions struct {
	// Partition is the AWS partition of the task ARN; empty derives it from
	// the region.
	Partition string
	// STSEndpoint replaces the regional endpoint, with or without scheme.
	STSEndpoint string
	// ServerID is the auth method's ServerIDHeaderValue, against replay to
	// another Consul; empty when the method has none.
	ServerID string
	// IncludeEntity adds a signed GetRole or GetUser, so that Consul can read
	// the entity's path and tags.
	IncludeEntity bool
}

// Signer makes bearers for the task's own identity. It is safe for concurrent
// use; credentials are fetched once and again when they expire.
type Signer struct {
	cfg       aws.Config
	role      *taskRole
	userAgent string
	sts       *http.Client
}

// NewSigner loads the configuration. It does no network I/O.
func NewSigner(ctx context.Context, o LoadOptions) (*Signer, error) {
	// The endpoint is on the same host: no proxy.
	local := &http.Client{Timeout: RequestTimeout, Transport: &http.Transport{IdleConnTimeout: time.Second}}
	role := &taskRole{http: local}
	cfg, err := LoadConfig(ctx, o, watchTaskRole(role))
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, &retry.PermanentError{Err: fmt.Errorf("no AWS region: set consulLogin.region or AWS_REGION")}
	}
	return &Signer{cfg: cfg, role: role, userAgent: o.userAgent(), sts: stsClient()}, nil
}

// Bearer signs a login for now. AWS accepts the signature for 15 minutes, so
// every attempt wants a fresh one. Errors that no retry mends are a
// *retry.PermanentError.
func (s *Signer) Bearer(ctx context.Context, o BearerOptions) (string, error) {
	signer, sts, err := s.prepare(ctx, o)
	if err != nil {
		return "", err
	}
	if !o.IncludeEntity {
		return signer.login(ctx, sts, nil)
	}
	arn, err := s.entityARN(ctx, signer, sts)
	if err != nil {
		return "", err
	}
	entity, err := parseEntity(arn)
	if err != nil {
		return "", err
	}
	iam, err := iamEndpoint(s.partition(o))
	if err != nil {
		return "", err
	}
	headers, err := signer.entityHeaders(ctx, iam, entity)
	if err != nil {
		return "", err
	}
	return signer.login(ctx, sts, headers)
}

// prepare returns what signs with the credentials of now, and STS's endpoint.
func (s *Signer) prepare(ctx context.Context, o BearerOptions) (requestSigner, endpoint, error) {
	creds, err := s.credentials(ctx)
	signer := requestSigner{creds: creds, userAgent: s.userAgent, serverID: o.ServerID, now: time.Now()}
	return signer, stsEndpoint(o.STSEndpoint, s.cfg.Region, s.partition(o)), err
}

func (s *Signer) partition(o BearerOptions) string {
	return cmp.Or(o.Partition, partitionOf(s.cfg.Region))
}

func (s *Signer) credentials(ctx context.Context) (aws.Credentials, error) {
	if s.cfg.Credentials == nil {
		return aws.Credentials{},
			&retry.PermanentError{Err: fmt.Errorf("no AWS credentials: give the task a task role")}
	}
	creds, err := s.cfg.Credentials.Retrieve(ctx)
	switch {
	case err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "EC2 IMDS"): // the last that the SDK asks
		err = errors.New("get AWS credentials: the task has no task role, and the instance gives none: " +
			"set taskRoleArn in the task definition")
	case err != nil:
		err = fmt.Errorf("get AWS credentials (does the task have a task role?): %w", err)
	}
	return creds, err
}

// Identity asks STS who signs, with the request that Bearer signs for Consul.
func (s *Signer) Identity(ctx context.Context, o BearerOptions) (arn string, err error) {
	signer, sts, err := s.prepare(ctx, o)
	if err != nil {
		return "", err
	}
	return s.callerIdentity(ctx, signer, sts)
}

// callerIdentity asks STS for the owner of the credentials.
func (s *Signer) callerIdentity(ctx context.Context, signer requestSigner, sts endpoint) (string, error) {
	req, err := signer.sign(ctx, "sts", sts, callerIdentityForm, nil)
	if err != nil {
		return "", err
	}
	return callerIdentity(s.sts, req)
}

// entityARN returns the owner of the credentials: from their document or,
// when they come from elsewhere, from STS.
func (s *Signer) entityARN(ctx context.Context, signer requestSigner, sts endpoint) (string, error) {
	if arn := s.role.ARN(); arn != "" && signer.creds.Source == endpointcreds.ProviderName {
		return arn, nil
	}
	return s.callerIdentity(ctx, signer, sts)
}

const (
	callerIdentityForm = "Action=GetCallerIdentity&Version=2011-06-15"
	formType           = "application/x-www-form-urlencoded; charset=utf-8"
)

// entityForm returns the form of GetRole or GetUser.
func entityForm(e entity) string {
	if e.user {
		return url.Values{"Action": {"GetUser"}, "UserName": {e.name}, "Version": {"2010-05-08"}}.Encode()
	}
	return url.Values{"Action": {"GetRole"}, "RoleName": {e.name}, "Version": {"2010-05-08"}}.Encode()
}

// requestSigner signs with one set of credentials at one moment.
type requestSigner struct {
	creds               aws.Credentials
	userAgent, serverID string
	now                 time.Time
}

// sign builds the POST of a form and signs it; more are further headers to
// sign.
func (s requestSigner) sign(
	ctx context.Context, service string, to endpoint, form string, more map[string]string,
) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url, strings.NewReader(form))
	if err != nil {
		return nil, &retry.PermanentError{Err: fmt.Errorf("%s endpoint: %w", service, err)}
	}
	req.Header.Set("Content-Type", formType)
	req.Header.Set("Content-Length", strconv.Itoa(len(form)))
	req.Header.Set("User-Agent", s.userAgent)
	if s.serverID != "" {
		req.Header.Set(headerServerID, s.serverID)
	}
	for name, value := range more {
		req.Header.Set(name, value)
	}
	hash := sha256.Sum256([]byte(form))
	err = v4.NewSigner().SignHTTP(ctx, s.creds, req, hex.EncodeToString(hash[:]), service, to.region, s.now)
	if err != nil {
		return nil, fmt.Errorf("sign the %s request: %w", service, err)
	}
	return req, nil
}

// entityHeaders packs a signed GetRole or GetUser into headers.
func (s requestSigner) entityHeaders(ctx context.Context, iam endpoint, e entity) (map[string]string, error) {
	form := entityForm(e)
	req, err := s.sign(ctx, "iam", iam, form, nil)
	if err != nil {
		return nil, err
	}
	headers, err := json.Marshal(req.Header)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		headerEntityMethod:  req.Method,
		headerEntityURL:     req.URL.String(),
		headerEntityHeaders: string(headers),
		headerEntityBody:    form,
	}, nil
}

// login signs GetCallerIdentity and encodes it as the bearer.
func (s requestSigner) login(ctx context.Context, sts endpoint, entity map[string]string) (string, error) {
	req, err := s.sign(ctx, "sts", sts, callerIdentityForm, entity)
	if err != nil {
		return "", err
	}
	headers, err := json.Marshal(req.Header)
	if err != nil {
		return "", err
	}
	bearer, err := json.Marshal(map[string]string{
		"iam_http_request_method": req.Method,
		"iam_request_url":         base64.StdEncoding.EncodeToString([]byte(req.URL.String())),
		"iam_request_headers":     base64.StdEncoding.EncodeToString(headers),
		"iam_request_body":        base64.StdEncoding.EncodeToString([]byte(callerIdentityForm)),
	})
	return string(bearer), err
}

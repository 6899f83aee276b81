package iam

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	amzDate       = "X-Amz-Date"
	securityToken = "X-Amz-Security-Token"
	dateFormat    = "20060102T150405Z"
	// skew is how far a signing time may be from now, either way.
	skew = 15 * time.Minute
)

// Verifier checks signatures against a Store's keys.
type Verifier struct {
	Store *Store
	// Services and Regions are those that a request may be signed for.
	Services, Regions []string
}

// Error is why a request is refused, in the words of AWS's Query API.
type Error struct {
	// Status is HTTP's.
	Status        int
	Code, Message string
}

// Error returns "code: message".
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// ClaimedService returns the service that a request says it was signed for, or nothing; no signature
// is looked at.
func ClaimedService(r *http.Request) string {
	if auth, bad := parseAuthorization(r.Header.Get("Authorization")); bad == nil {
		return auth.service
	}
	return ""
}

// Verify returns the key that signed r, whose body is body, and the service
// it was signed for. It signs the request again with the SDK's own signer and
// compares. Headers that AWS's SDKs never sign (User-Agent among them) are not
// verified when a client lists them in SignedHeaders: such a request is
// refused as a mismatch.
func (v Verifier) Verify(ctx context.Context, r *http.Request, body []byte, now time.Time) (Key, string, *Error) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return Key{}, "", &Error{403, "MissingAuthenticationToken", "Request is missing Authentication Token"}
	}
	if len(headers) > 1 {
		return Key{}, "", incomplete("Request has more than one Authorization header.")
	}
	auth, bad := parseAuthorization(headers[0])
	if bad != nil {
		return Key{}, "", bad
	}
	if bad := v.checkScope(auth); bad != nil {
		return Key{}, "", bad
	}
	signed, bad := signingTime(r, auth, now)
	if bad != nil {
		return Key{}, "", bad
	}
	key, bad := v.key(r, auth)
	if bad != nil {
		return Key{}, "", bad
	}
	if bad := checkSignedHeaders(r, auth); bad != nil {
		return Key{}, "", bad
	}
	want, err := signature(ctx, r, body, auth, key, signed)
	if err != nil || subtle.ConstantTimeCompare([]byte(want), []byte(auth.signature)) != 1 {
		return Key{}, "", mismatch("The request signature we calculated does not match the signature you provided. " +
			"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	if key.Expired(now) {
		return Key{}, "", &Error{403, "ExpiredToken", "The security token included in the request is expired"}
	}
	return key, auth.service, nil
}

func (v Verifier) checkScope(auth authorization) *Error {
	if !slices.Contains(v.Services, auth.service) {
		return mismatch("Credential should be scoped to correct service: '%s'. ", v.Services[0])
	}
	if !slices.Contains(v.Regions, auth.region) {
		return mismatch("Credential should be scoped to a valid region, not '%s'. ", auth.region)
	}
	return nil
}

// signingTime reads the X-Amz-Date header and compares it with the scope and
// with now. STS and IAM answer SignatureDoesNotMatch to a stale date in a
// header; RequestExpired is theirs for presigned URLs, which are not served.
func signingTime(r *http.Request, auth authorization, now time.Time) (time.Time, *Error) {
	value := r.Header.Get(amzDate)
	if value == "" {
		return time.Time{}, incomplete("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' "+
			"header. Authorization=%s", r.Header.Get("Authorization"))
	}
	t, err := time.Parse(dateFormat, value)
	if err != nil {
		return time.Time{}, incomplete("Date must be in ISO-8601 'basic format'. Got '%s'. See "+
			"http://en.wikipedia.org/wiki/ISO_8601", value)
	}
	if day := t.Format("20060102"); day != auth.date {
		return time.Time{}, mismatch("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date "+
			"from HTTP: '%s' != '%s', from '%s'.", auth.date, day, value)
	}
	server := now.UTC().Format(dateFormat)
	if limit := now.Add(-skew); t.Before(limit) {
		return time.Time{}, mismatch("Signature expired: %s is now earlier than %s (%s - 15 min.)", value,
			limit.UTC().Format(dateFormat), server)
	}
	if limit := now.Add(skew); t.After(limit) {
		return time.Time{}, mismatch("Signature not yet current: %s is still later than %s (%s + 15 min.)", value,
			limit.UTC().Format(dateFormat), server)
	}
	return t, nil
}

func (v Verifier) key(r *http.Request, auth authorization) (Key, *Error) {
	key, ok := v.Store.Key(auth.keyID)
	if !ok || subtle.ConstantTimeCompare([]byte(key.Token), []byte(r.Header.Get(securityToken))) != 1 {
		return Key{}, &Error{403, "InvalidClientTokenId", "The security token included in the request is invalid."}
	}
	return key, nil
}

func checkSignedHeaders(r *http.Request, auth authorization) *Error {
	if !auth.signs("host") {
		return mismatch("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
	}
	for name := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") && !auth.signs(lower) {
			return mismatch("'%s' must be a 'SignedHeader' in the AWS Authorization.", lower)
		}
	}
	return nil
}

// signature returns what the Signature parameter has to be: the SDK signs a copy of r that has the
// signed headers only.
func signature(ctx context.Context, r *http.Request, body []byte, auth authorization, key Key,
	signed time.Time) (string, error) {
	c := &http.Request{
		Method: r.Method,
		URL:    &url.URL{Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery},
		Host:   r.Host,
		Header: http.Header{},
	}
	for _, name := range auth.signedHeaders {
		switch name {
		case "host": // from c.Host
		case "content-length":
			c.ContentLength = int64(len(body))
		default:
			if values := r.Header.Values(name); len(values) > 0 {
				c.Header[http.CanonicalHeaderKey(name)] = append([]string(nil), values...)
			}
		}
	}
	sum := sha256.Sum256(body)
	creds := aws.Credentials{AccessKeyID: key.AccessKeyID, SecretAccessKey: key.Secret, SessionToken: key.Token}
	err := v4.NewSigner().SignHTTP(ctx, creds, c, hex.EncodeToString(sum[:]), auth.service, auth.region, signed)
	if err != nil {
		return "", err
	}
	again, bad := parseAuthorization(c.Header.Get("Authorization"))
	if bad != nil {
		return "", bad
	}
	if !slices.Equal(again.signedHeaders, auth.signedHeaders) {
		return "", errors.New("signed headers are missing, not sorted, or never signed by SDKs")
	}
	return again.signature, nil
}

package awsutil

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// maxAnswer bounds the answers that this package reads: a few KiB in reality.
const maxAnswer = 1 << 20

// entity is an IAM role or user.
type entity struct {
	// user is false for a role.
	user bool
	// name is without the path, as GetRole and GetUser want it.
	name string
}

// parseEntity reads the ARN of a role, user or assumed role. Other callers,
// such as the account itself, cannot log in with their details.
func parseEntity(s string) (entity, error) {
	a, err := arn.Parse(s)
	if err != nil {
		return entity{}, fmt.Errorf("AWS identity %q: %w", s, err)
	}
	kind, rest, _ := strings.Cut(a.Resource, "/")
	switch kind {
	case "assumed-role":
		// assumed-role/<name>/<session>, never with the role's path.
		rest, _, _ = strings.Cut(rest, "/")
	case "role", "user":
		rest = rest[strings.LastIndex(rest, "/")+1:]
	default:
		rest = ""
	}
	if rest == "" {
		return entity{}, &retry.PermanentError{Err: fmt.Errorf(
			"AWS identity %q is neither a role nor a user: give the task a task role, or set "+
				"consulLogin.includeEntity to false", s)}
	}
	return entity{user: kind == "user", name: rest}, nil
}

// taskRole is the HTTP client of the SDK's container credentials provider. The
// document that carries the credentials also names the role; taking it from
// there saves every task a call to STS.
type taskRole struct {
	http *http.Client

	mu  sync.Mutex
	arn string
}

// Do sends the request and remembers the answer's RoleArn.
func (t *taskRole) Do(req *http.Request) (*http.Response, error) {
	resp, err := t.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		if err := t.remember(body); err != nil {
			return nil, err
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// remember notes whose the credentials are. A document without a key is an error:
// the provider would take it for credentials that never expire.
func (t *taskRole) remember(document []byte) error {
	var doc struct{ RoleArn, AccessKeyID, SecretAccessKey string }
	switch err := json.Unmarshal(document, &doc); {
	case err != nil && json.Valid(document):
		return fmt.Errorf("the answer is no credentials document: %w", err)
	case err != nil:
		return nil // the provider complains
	case doc.AccessKeyID == "" || doc.SecretAccessKey == "":
		return errors.New("the answer has no access key")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arn = doc.RoleArn
	return nil
}

// ARN returns the role's ARN, or an empty string when no document has named it.
func (t *taskRole) ARN() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.arn
}

// stsClient sends the one live call there is. It repeats it twice when STS
// throttles or is away for a moment: the signature is good for 15 minutes, and
// a whole new login costs more than a second request.
func stsClient() *http.Client {
	c := retryablehttp.NewClient()
	c.HTTPClient = &http.Client{Timeout: RequestTimeout}
	c.RetryMax, c.RetryWaitMin, c.RetryWaitMax = 2, 100*time.Millisecond, time.Second
	c.Logger = nil // the login's own retry logs what remains
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return c.StandardClient()
}

// callerIdentity sends a signed GetCallerIdentity and returns the caller's ARN.
func callerIdentity(client *http.Client, req *http.Request) (string, error) {
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("call sts:GetCallerIdentity: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", fmt.Errorf("call sts:GetCallerIdentity at %s: %w", req.URL, err)
	}
	if resp.StatusCode != http.StatusOK {
		refusal := parseRefusal(body)
		err := fmt.Errorf("call sts:GetCallerIdentity at %s: status %d: %s", req.URL, resp.StatusCode, refusal)
		if c := resp.StatusCode; c >= 400 && c < 500 && c != http.StatusTooManyRequests && !refusal.throttled() {
			return "", &retry.PermanentError{Err: fmt.Errorf("%w: %s", err, refusal.remedy())}
		}
		return "", err
	}
	arn, err := parseCallerIdentity(body)
	if err != nil {
		return "", fmt.Errorf("call sts:GetCallerIdentity at %s: %w", req.URL, err)
	}
	return arn, nil
}

// parseCallerIdentity returns the ARN in STS's answer.
func parseCallerIdentity(body []byte) (string, error) {
	var answer struct {
		XMLName xml.Name `xml:"GetCallerIdentityResponse"`
		ARN     string   `xml:"GetCallerIdentityResult>Arn"`
	}
	if err := xml.Unmarshal(body, &answer); err != nil {
		return "", fmt.Errorf("the answer is not a GetCallerIdentityResponse: %w", err)
	}
	if answer.ARN == "" {
		return "", fmt.Errorf("the answer names no ARN")
	}
	return answer.ARN, nil
}

// refusal is an error document of STS.
type refusal struct {
	Code    string `xml:"Error>Code"`
	Message string `xml:"Error>Message"`
}

// parseRefusal reads an error document; what is none has no code.
func parseRefusal(body []byte) refusal {
	var r refusal
	if xml.Unmarshal(body, &r) != nil {
		return refusal{}
	}
	return r
}

// String returns the code and the message.
func (r refusal) String() string {
	if r.Code == "" {
		return "no error document"
	}
	return r.Code + ": " + r.Message
}

// throttled reports whether STS has had too many requests. It answers with status
// 400, as all services with the Query protocol.
func (r refusal) throttled() bool {
	_, known := awsretry.DefaultThrottleErrorCodes[r.Code]
	return known
}

// remedy returns what the user can do about a refusal.
func (r refusal) remedy() string {
	if strings.HasPrefix(r.Message, "Signature expired") || strings.HasPrefix(r.Message, "Signature not yet current") {
		return "the host's clock and that of AWS are too far apart"
	}
	return "check the task role and consulLogin.region"
}

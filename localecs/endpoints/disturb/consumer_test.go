package disturb_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/smithy-go"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/tmds"
	ours "github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/fault"
)

// Whatever the endpoint does, its client says an error, never an empty task.
func TestTheMetadataClientRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault fault.Endpoint
		want  string
	}{
		{fault.Endpoint{Hang: true}, "Client.Timeout"},
		{fault.Endpoint{Slow: time.Minute}, "Client.Timeout"},
		{fault.Endpoint{Status: 429}, "status 429: You have reached maximum request limit."},
		{fault.Endpoint{Status: 500}, `status 500: "Unable to generate metadata`},
		{fault.Endpoint{Cut: true}, "unexpected EOF"},
		{fault.Endpoint{Wrong: fault.Empty}, "TaskARN"},
		{fault.Endpoint{Wrong: fault.Truncated}, "unexpected end of JSON"},
		{fault.Endpoint{Wrong: fault.Page}, `got "<html>`},
		{fault.Endpoint{Wrong: fault.Error}, `got "\"Unable`},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.fault.Name = fault.Metadata
			end := w.faults.Begin(c.fault, 1)
			client := tmds.New(w.metadata)
			if task, err := client.Task(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %+v, %v, want %q", c.fault, task, err, c.want)
			}
			end()
			if task, err := client.Task(t.Context()); err != nil || task.Family != "web" {
				t.Errorf("after it: %+v, %v", task, err)
			}
		})
	}
}

// ecsClient asks once.
func (w *world) ecsClient() *ecs.Client {
	return ecs.New(ecs.Options{
		Region: region, BaseEndpoint: aws.String(w.aws), Retryer: retry.AddWithMaxAttempts(retry.NewStandard(), 1),
		Credentials: credentials.NewStaticCredentialsProvider(w.key.AccessKeyID, w.key.Secret, w.key.Token),
	})
}

func TestTheSDKOfECSKnowsItsErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault     fault.Endpoint
		code      string
		throttled bool
	}{
		{fault.Endpoint{Status: 429}, "ThrottlingException", true},
		{fault.Endpoint{Status: 500}, "ServerException", false},
		{fault.Endpoint{Status: 503}, "ServiceUnavailable", false},
		{fault.Endpoint{Cut: true}, "", false},
		{fault.Endpoint{Wrong: fault.Truncated}, "", false},
		{fault.Endpoint{Wrong: fault.Page}, "", false},
		{fault.Endpoint{Skew: 16 * time.Minute}, "InvalidSignatureException", false},
		{fault.Endpoint{Skew: -16 * time.Minute}, "InvalidSignatureException", false},
	} {
		w := newWorld(t)
		c.fault.Name = fault.ECS
		w.faults.Begin(c.fault, 1)
		_, err := w.ecsClient().ListClusters(t.Context(), &ecs.ListClustersInput{})
		said, _ := errors.AsType[smithy.APIError](err)
		if err == nil || c.code != "" && (said == nil || said.ErrorCode() != c.code) {
			t.Errorf("%s: %v, want %s", c.fault, err, c.code)
		}
		throttle := retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}
		if got := throttle.IsErrorThrottle(err) == aws.TrueTernary; got != c.throttled {
			t.Errorf("%s: throttled is %v", c.fault, got)
		}
	}
}

// The SDK learns from the answer that its clock is off, as with AWS.
func TestTheSDKOfECSMendsItsClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.faults.Begin(fault.Endpoint{Name: fault.ECS, Skew: -3 * time.Hour}, 1)
	client := ecs.New(w.ecsClient().Options(), func(o *ecs.Options) {
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 2, time.Millisecond })
	})
	out, err := client.ListClusters(t.Context(), &ecs.ListClustersInput{})
	if err != nil || len(out.ClusterArns) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestTagsAreMissing(t *testing.T) {
	t.Parallel()
	for endpoint, tag := range map[string]string{
		fault.Metadata: `"TaskTags":{"team":"shop"}`,
		fault.IAM:      "<Key>consul.hashicorp.com.service-name</Key>",
		fault.ECS:      `"tags":[{"key":"consul.hashicorp.com/mesh"`,
	} {
		w := newWorld(t)
		resp, err := w.ask(t, endpoint)
		if _, _, body := read(t, resp, err); !strings.Contains(body, tag) {
			t.Errorf("%s: %s without %s", endpoint, body, tag)
		}
		w.faults.Begin(fault.Endpoint{Name: endpoint, NoTags: true}, 1)
		resp, err = w.ask(t, endpoint)
		if status, _, body := read(t, resp, err); status != 200 || strings.Contains(body, tag) || !strings.Contains(body, "web") && !strings.Contains(body, arn) {
			t.Errorf("%s without tags: %d %s", endpoint, status, body)
		}
	}
}

func TestClocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{fault.Metadata, fault.Credentials} {
		w.faults.Begin(fault.Endpoint{Name: name, Skew: 2 * time.Hour}, 1)
		w.faults.Begin(fault.Endpoint{Name: name, Skew: -time.Hour}, 1) // they add up
	}
	var task struct {
		Containers []struct {
			StartedAt time.Time
			Health    struct{ StatusSince time.Time }
		}
		ClockDrift struct {
			ReferenceTimestamp         time.Time
			ClockErrorBound            float64
			ClockSynchronizationStatus string
		}
	}
	resp, err := w.ask(t, fault.Metadata)
	if _, _, body := read(t, resp, err); json.Unmarshal([]byte(body), &task) != nil {
		t.Fatal(body)
	}
	later := started().Add(time.Hour)
	if c := task.Containers[0]; !c.StartedAt.Equal(later) || !c.Health.StatusSince.Equal(later) {
		t.Errorf("container %+v", c)
	}
	if d := task.ClockDrift; !d.ReferenceTimestamp.Equal(later) || d.ClockErrorBound != 3.6e6 || d.ClockSynchronizationStatus != "NOT_SYNCHRONIZED" {
		t.Errorf("clock %+v", d)
	}
	var key struct{ Expiration time.Time }
	resp, err = w.ask(t, fault.Credentials)
	if _, _, body := read(t, resp, err); json.Unmarshal([]byte(body), &key) != nil || !key.Expiration.Equal(w.key.Expires.Add(time.Hour)) {
		t.Errorf("credentials %+v, want 1h after %s", key, w.key.Expires)
	}
	if date, err := time.Parse(time.RFC1123, resp.Header.Get("Date")); err != nil || time.Until(date) < 59*time.Minute {
		t.Errorf("Date %q", resp.Header.Get("Date"))
	}
}

// A task signs in with a bearer for which it asks STS who it is.
func TestTheSignerAsksSTS(t *testing.T) { // not parallel: sets the environment
	w := newWorld(t)
	for _, name := range []string{"AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	t.Setenv("AWS_ACCESS_KEY_ID", w.key.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", w.key.Secret)
	t.Setenv("AWS_SESSION_TOKEN", w.key.Token)
	bearer := func(ctx context.Context) error {
		signer, err := awsutil.NewSigner(ctx, awsutil.LoadOptions{Region: region, UserAgent: "consul-ecs", Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = signer.Bearer(ctx, awsutil.BearerOptions{STSEndpoint: w.aws, IncludeEntity: true})
		return err
	}
	if err := bearer(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fault     fault.Endpoint
		want      string
		permanent bool
	}{
		{fault.Endpoint{Skew: 16 * time.Minute}, "clock and that of AWS are too far apart", true},
		{fault.Endpoint{Skew: -16 * time.Minute}, "SignatureDoesNotMatch: Signature not yet current", true},
		{fault.Endpoint{Status: 429}, "Throttling: Rate exceeded", false},
		{fault.Endpoint{Status: 500}, "InternalFailure", false},
		{fault.Endpoint{Status: 503}, "ServiceUnavailable", false},
		{fault.Endpoint{Cut: true}, "unexpected EOF", false},
		{fault.Endpoint{Wrong: fault.Empty}, "names no ARN", false},
		{fault.Endpoint{Wrong: fault.Truncated}, "not a GetCallerIdentityResponse", false},
		{fault.Endpoint{Wrong: fault.Page}, "not a GetCallerIdentityResponse", false},
		{fault.Endpoint{Wrong: fault.Error}, "not a GetCallerIdentityResponse", false},
	} {
		c.fault.Name = fault.STS
		end := w.faults.Begin(c.fault, 1)
		err := bearer(t.Context())
		_, permanent := errors.AsType[*ours.PermanentError](err)
		if err == nil || !strings.Contains(err.Error(), c.want) || permanent != c.permanent {
			t.Errorf("%s: %v (permanent: %v), want %q", c.fault, err, permanent, c.want)
		}
		end()
	}
	if err := bearer(t.Context()); err != nil {
		t.Errorf("after all: %v", err)
	}
}

// Credentials that cannot be had now may be had soon.
func TestTheSignerAsksForCredentials(t *testing.T) { // not parallel: sets the environment
	w := newWorld(t)
	for _, name := range []string{"AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", w.credentials)
	signer, err := awsutil.NewSigner(t.Context(), awsutil.LoadOptions{Region: region, UserAgent: "consul-ecs", Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fault fault.Endpoint
		want  string
	}{
		{fault.Endpoint{Hang: true}, "exceeded"},
		{fault.Endpoint{Status: 429}, "maximum request limit"},
		{fault.Endpoint{Status: 500}, "InternalServerError"},
		{fault.Endpoint{Status: 503}, "CredentialsUninitialized"},
		{fault.Endpoint{Cut: true}, "EOF"},
		{fault.Endpoint{Wrong: fault.Empty}, "no access key"},
		{fault.Endpoint{Wrong: fault.Truncated}, "unexpected EOF"},
		{fault.Endpoint{Wrong: fault.Page}, "invalid character '<'"},
		{fault.Endpoint{Wrong: fault.Error}, "no access key"},
	} {
		c.fault.Name = fault.Credentials
		end := w.faults.Begin(c.fault, 1)
		patience := testkit.Patience
		if c.fault.Hang {
			patience = 8 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := signer.Bearer(ctx, awsutil.BearerOptions{STSEndpoint: w.aws, IncludeEntity: true})
		cancel()
		_, permanent := errors.AsType[*ours.PermanentError](err)
		if err == nil || !strings.Contains(err.Error(), c.want) || permanent {
			t.Errorf("%s: %v (permanent: %v), want %q", c.fault, err, permanent, c.want)
		}
		end()
	}
	for _, skew := range []time.Duration{-7 * time.Hour, 7 * time.Hour} {
		end := w.faults.Begin(fault.Endpoint{Name: fault.Credentials, Skew: skew}, 1)
		if _, err := signer.Bearer(t.Context(), awsutil.BearerOptions{STSEndpoint: w.aws, IncludeEntity: true}); err != nil {
			t.Errorf("clock %s off: %v", skew, err)
		}
		end()
	}
}

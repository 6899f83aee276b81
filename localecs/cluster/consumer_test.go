package cluster_test

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
	ours "github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/chaos"
)

// Whatever the endpoint does, its client says an error, never an empty task.
func TestMetadataClientRefusesInvalidAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault chaos.Endpoint
		want  string
	}{
		{chaos.Endpoint{Hang: true}, "i/o timeout"},
		{chaos.Endpoint{Slow: time.Minute}, "i/o timeout"},
		{chaos.Endpoint{Status: 429}, "status 429: You have reached maximum request limit."},
		{chaos.Endpoint{Status: 500}, `status 500: "Unable to generate metadata`},
		{chaos.Endpoint{Cut: true}, "unexpected EOF"},
		{chaos.Endpoint{Wrong: chaos.Empty}, "TaskARN"},
		{chaos.Endpoint{Wrong: chaos.Truncated}, "unexpected end of JSON"},
		{chaos.Endpoint{Wrong: chaos.Page}, `got "<html>`},
		{chaos.Endpoint{Wrong: chaos.Error}, `got "\"Unable`},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			c.fault.Name = chaos.Metadata
			end := w.faults.Begin(c.fault, 1)
			client := awsutil.NewMetadataClient(w.metadata)
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
func (w *fixture) ecsClient() *ecs.Client {
	return ecs.New(ecs.Options{
		Region: region, BaseEndpoint: aws.String(w.aws), Retryer: retry.AddWithMaxAttempts(retry.NewStandard(), 1),
		Credentials: credentials.NewStaticCredentialsProvider(w.key.AccessKeyID, w.key.Secret, w.key.Token),
	})
}

func TestSDKOfECSRecognizesTheErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault     chaos.Endpoint
		code      string
		throttled bool
	}{
		{chaos.Endpoint{Status: 429}, "ThrottlingException", true},
		{chaos.Endpoint{Status: 500}, "ServerException", false},
		{chaos.Endpoint{Status: 503}, "ServiceUnavailable", false},
		{chaos.Endpoint{Cut: true}, "", false},
		{chaos.Endpoint{Wrong: chaos.Truncated}, "", false},
		{chaos.Endpoint{Wrong: chaos.Page}, "", false},
		{chaos.Endpoint{Skew: 16 * time.Minute}, "InvalidSignatureException", false},
		{chaos.Endpoint{Skew: -16 * time.Minute}, "InvalidSignatureException", false},
	} {
		w := newFixture(t)
		c.fault.Name = chaos.ECS
		w.faults.Begin(c.fault, 1)
		_, err := w.ecsClient().ListClusters(t.Context(), &ecs.ListClustersInput{})
		said, ok := errors.AsType[smithy.APIError](err)
		if err == nil {
			t.Errorf("%s: no error", c.fault)
		}
		if named := ok && said.ErrorCode() == c.code; c.code != "" && !named {
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
	w := newFixture(t)
	w.faults.Begin(chaos.Endpoint{Name: chaos.ECS, Skew: -3 * time.Hour}, 1)
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
		chaos.IAM: "<Key>consul.hashicorp.com.service-name</Key>",
		chaos.ECS: `"tags":[{"key":"consul.hashicorp.com/mesh"`,
	} {
		w := newFixture(t)
		resp, err := w.ask(t, endpoint)
		if _, _, body := read(t, resp, err); !strings.Contains(body, tag) {
			t.Errorf("%s: %s without %s", endpoint, body, tag)
		}
		w.faults.Begin(chaos.Endpoint{Name: endpoint, NoTags: true}, 1)
		resp, err = w.ask(t, endpoint)
		status, _, body := read(t, resp, err)
		testkit.Equal(t, endpoint+" without tags: status", status, 200)
		if strings.Contains(body, tag) {
			t.Errorf("%s without tags: %s", endpoint, body)
		}
		if !strings.Contains(body, "web") && !strings.Contains(body, arn) {
			t.Errorf("%s without tags: %s, want the task in it", endpoint, body)
		}
	}
}

func TestClocks(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for _, name := range []string{chaos.Metadata, chaos.Credentials} {
		w.faults.Begin(chaos.Endpoint{Name: name, Skew: 2 * time.Hour}, 1)
		w.faults.Begin(chaos.Endpoint{Name: name, Skew: -time.Hour}, 1) // they add up
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
	resp, err := w.ask(t, chaos.Metadata)
	if _, _, body := read(t, resp, err); json.Unmarshal([]byte(body), &task) != nil {
		t.Fatal(body)
	}
	later := started().Add(time.Hour)
	if c := task.Containers[0]; !c.StartedAt.Equal(later) || !c.Health.StatusSince.Equal(later) {
		t.Errorf("container %+v", c)
	}
	d := task.ClockDrift
	if !d.ReferenceTimestamp.Equal(later) {
		t.Errorf("reference of the clock %s, want %s", d.ReferenceTimestamp, later)
	}
	testkit.Equal(t, "clock error bound", d.ClockErrorBound, 3.6e6)
	testkit.Equal(t, "clock status", d.ClockSynchronizationStatus, "NOT_SYNCHRONIZED")
	var key struct{ Expiration time.Time }
	resp, err = w.ask(t, chaos.Credentials)
	if _, _, body := read(t, resp, err); json.Unmarshal([]byte(body), &key) != nil || !key.Expiration.Equal(w.key.Expires.Add(time.Hour)) {
		t.Errorf("credentials %+v, want 1h after %s", key, w.key.Expires)
	}
	if date, err := time.Parse(time.RFC1123, resp.Header.Get("Date")); err != nil || time.Until(date) < 59*time.Minute {
		t.Errorf("Date %q", resp.Header.Get("Date"))
	}
}

// A task signs in with a bearer for which it asks STS who it is.
func TestTheSignerAsksSTS(t *testing.T) { // not parallel: sets the environment
	w := newFixture(t)
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
		fault     chaos.Endpoint
		want      string
		permanent bool
	}{
		{chaos.Endpoint{Skew: 16 * time.Minute}, "clock and that of AWS are too far apart", true},
		{chaos.Endpoint{Skew: -16 * time.Minute}, "SignatureDoesNotMatch: Signature not yet current", true},
		{chaos.Endpoint{Status: 429}, "Throttling: Rate exceeded", false},
		{chaos.Endpoint{Status: 500}, "InternalFailure", false},
		{chaos.Endpoint{Status: 503}, "ServiceUnavailable", false},
		{chaos.Endpoint{Cut: true}, "unexpected EOF", false},
		{chaos.Endpoint{Wrong: chaos.Empty}, "names no ARN", false},
		{chaos.Endpoint{Wrong: chaos.Truncated}, "not a GetCallerIdentityResponse", false},
		{chaos.Endpoint{Wrong: chaos.Page}, "not a GetCallerIdentityResponse", false},
		{chaos.Endpoint{Wrong: chaos.Error}, "not a GetCallerIdentityResponse", false},
	} {
		c.fault.Name = chaos.STS
		end := w.faults.Begin(c.fault, 1)
		err := bearer(t.Context())
		_, permanent := errors.AsType[*ours.PermanentError](err)
		testkit.ErrorContains(t, err, c.want)
		if permanent != c.permanent {
			t.Errorf("%s: %v (permanent: %v), want %v", c.fault, err, permanent, c.permanent)
		}
		end()
	}
	if err := bearer(t.Context()); err != nil {
		t.Errorf("after all: %v", err)
	}
}

// Credentials that cannot be had now may be had soon.
func TestTheSignerAsksForCredentials(t *testing.T) { // not parallel: sets the environment
	w := newFixture(t)
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
		fault chaos.Endpoint
		want  string
	}{
		{chaos.Endpoint{Hang: true}, "exceeded"},
		{chaos.Endpoint{Status: 429}, "maximum request limit"},
		{chaos.Endpoint{Status: 500}, "InternalServerError"},
		{chaos.Endpoint{Status: 503}, "CredentialsUninitialized"},
		{chaos.Endpoint{Cut: true}, "EOF"},
		{chaos.Endpoint{Wrong: chaos.Empty}, "no access key"},
		{chaos.Endpoint{Wrong: chaos.Truncated}, "unexpected EOF"},
		{chaos.Endpoint{Wrong: chaos.Page}, "invalid character '<'"},
		{chaos.Endpoint{Wrong: chaos.Error}, "no access key"},
	} {
		c.fault.Name = chaos.Credentials
		end := w.faults.Begin(c.fault, 1)
		patience := testkit.Patience
		if c.fault.Hang {
			patience = 8 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := signer.Bearer(ctx, awsutil.BearerOptions{STSEndpoint: w.aws, IncludeEntity: true})
		cancel()
		_, permanent := errors.AsType[*ours.PermanentError](err)
		testkit.ErrorContains(t, err, c.want)
		if permanent {
			t.Errorf("%s: %v is permanent", c.fault, err)
		}
		end()
	}
	for _, skew := range []time.Duration{-7 * time.Hour, 7 * time.Hour} {
		end := w.faults.Begin(chaos.Endpoint{Name: chaos.Credentials, Skew: skew}, 1)
		if _, err := signer.Bearer(t.Context(), awsutil.BearerOptions{STSEndpoint: w.aws, IncludeEntity: true}); err != nil {
			t.Errorf("clock %s off: %v", skew, err)
		}
		end()
	}
}

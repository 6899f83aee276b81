package awsutil

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func webRole() awstest.Role {
	return awstest.Role{Account: "123456789012", Path: "/consul-ecs/", Name: "web-role"}
}

func load() LoadOptions {
	return LoadOptions{DefaultRegion: "us-west-2", UserAgent: "consul-ecs", Version: "v1.2.3"}
}

// quiet removes whatever the machine's own environment says about AWS.
func quiet(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

func newSigner(t *testing.T, o LoadOptions) *Signer {
	t.Helper()
	s, err := NewSigner(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// readable decodes the parts of a bearer, for golden files.
func readable(t *testing.T, bearer string) []byte {
	t.Helper()
	var parts map[string]string
	if err := json.Unmarshal([]byte(bearer), &parts); err != nil {
		t.Fatal(err)
	}
	decoded := map[string]any{}
	for key, value := range parts {
		decoded[key] = value
		if key == "iam_http_request_method" {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		decoded[key] = string(raw)
		if key == "iam_request_headers" {
			var headers http.Header
			if err := json.Unmarshal(raw, &headers); err != nil {
				t.Fatal(err)
			}
			decoded[key] = headers
		}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(decoded); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String())
}

// TestBearerGolden fixes credentials and time, so the signatures are fixed too.
func TestBearerGolden(t *testing.T) {
	t.Parallel()
	temporary := aws.Credentials{AccessKeyID: "ASIAEXAMPLE", SecretAccessKey: "secret", SessionToken: "session"}
	permanent := aws.Credentials{AccessKeyID: "AKIAEXAMPLE", SecretAccessKey: "secret"}
	tests := []struct {
		name     string
		creds    aws.Credentials
		serverID string
		sts      endpoint
		iam      string
		entity   *entity
	}{
		{"plain", permanent, "", stsEndpoint("", "us-west-2", "aws"), "", nil},
		{"role", temporary, "", stsEndpoint("", "us-west-2", "aws"), "aws", &entity{name: "web-role"}},
		{
			"role-server-id", temporary, "consul.example", stsEndpoint("", "us-west-2", "aws"), "aws",
			&entity{name: "web-role"},
		},
		{"user", permanent, "", stsEndpoint("", "eu-central-1", "aws"), "aws", &entity{user: true, name: "joe"}},
		{"china", temporary, "", stsEndpoint("", "cn-northwest-1", "aws-cn"), "aws-cn", &entity{name: "web-role"}},
		{
			"govcloud", temporary, "", stsEndpoint("", "us-gov-east-1", "aws-us-gov"), "aws-us-gov",
			&entity{name: "web-role"},
		},
		{"own-endpoint", temporary, "", stsEndpoint("https://vpce-1.sts.us-west-2.vpce.amazonaws.com", "us-west-2",
			"aws"), "aws", &entity{name: "web-role"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			signer := requestSigner{creds: tt.creds, userAgent: "consul-ecs/v1.2.3 (linux)", serverID: tt.serverID,
				now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
			var headers map[string]string
			if tt.entity != nil {
				iam, err := iamEndpoint(tt.iam)
				if err != nil {
					t.Fatal(err)
				}
				if headers, err = signer.entityHeaders(context.Background(), iam, *tt.entity); err != nil {
					t.Fatal(err)
				}
			}
			bearer, err := signer.login(context.Background(), tt.sts, headers)
			if err != nil {
				t.Fatal(err)
			}
			testkit.Golden(t, "bearer-"+tt.name+".json", readable(t, bearer))
		})
	}
}

// TestOneGETAndNoAWSCall: on ECS the credentials and the role's name come with
// one document.
func TestOneGETAndNoAWSCall(t *testing.T) {
	quiet(t)
	fake := awstest.New(t, webRole())
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fake.CredentialsURI())
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "let me in")
	s := newSigner(t, load())
	for range 2 {
		bearer, err := s.Bearer(context.Background(), BearerOptions{Partition: "aws", IncludeEntity: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(readable(t, bearer)); !strings.Contains(got, "RoleName=web-role&") {
			t.Errorf("bearer does not ask for web-role:\n%s", got)
		}
	}
	if got := fake.Actions(); !slices.Equal(got, []string{"credentials"}) {
		t.Errorf("requests = %v, want one for credentials", got)
	}
	if got := fake.Requests()[0].Header.Get("Authorization"); got != "let me in" {
		t.Errorf("Authorization = %q", got)
	}
}

// TestOneLiveCallForOtherCredentials: nothing but STS knows whose they are.
func TestOneLiveCallForOtherCredentials(t *testing.T) {
	quiet(t)
	fake := awstest.New(t, webRole())
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	// The container's endpoint counts for nothing then, RoleArn included.
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fake.CredentialsURI())
	bearer, err := newSigner(t, load()).Bearer(context.Background(),
		BearerOptions{STSEndpoint: fake.URL, ServerID: "consul.example", IncludeEntity: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(readable(t, bearer)); !strings.Contains(got, "RoleName=web-role&") {
		t.Errorf("bearer does not ask for web-role:\n%s", got)
	}
	if got := fake.Actions(); !slices.Equal(got, []string{"GetCallerIdentity"}) {
		t.Errorf("requests = %v, want one GetCallerIdentity", got)
	}
}

func TestNoCallWithoutEntity(t *testing.T) {
	quiet(t)
	fake := awstest.New(t, webRole())
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	if _, err := newSigner(t, load()).Bearer(context.Background(), BearerOptions{STSEndpoint: fake.URL}); err != nil {
		t.Fatal(err)
	}
	if got := fake.Actions(); len(got) != 0 {
		t.Errorf("requests = %v, want none", got)
	}
}

func TestRegion(t *testing.T) {
	tests := []struct {
		name, region, env, task, want string
	}{
		{"task ARN", "", "", "us-west-2", "us-west-2"},
		{"environment over task ARN", "", "eu-west-1", "us-west-2", "eu-west-1"},
		{"configuration over environment", "ap-south-1", "eu-west-1", "us-west-2", "ap-south-1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			quiet(t)
			t.Setenv("AWS_REGION", tt.env)
			s := newSigner(t, LoadOptions{Region: tt.region, DefaultRegion: tt.task})
			if s.cfg.Region != tt.want {
				t.Errorf("region = %q, want %q", s.cfg.Region, tt.want)
			}
			cfg, err := LoadConfig(context.Background(), LoadOptions{Region: tt.region, DefaultRegion: tt.task})
			if err != nil || cfg.Region != tt.want {
				t.Errorf("LoadConfig region = %q, %v, want %q", cfg.Region, err, tt.want)
			}
		})
	}
}

func TestSharedConfigIsRead(t *testing.T) {
	quiet(t)
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte("[default]\nregion = sa-east-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", path)
	if s := newSigner(t, load()); s.cfg.Region != "sa-east-1" {
		t.Errorf("region = %q", s.cfg.Region)
	}
}

func TestSignerErrors(t *testing.T) {
	quiet(t)
	_, err := NewSigner(context.Background(), LoadOptions{})
	wantPermanent(t, err, "consulLogin.region")
	// No role at all: maybe the metadata service is just slow to come.
	_, err = newSigner(t, load()).Bearer(context.Background(), BearerOptions{})
	if err == nil || !strings.Contains(err.Error(), "task role") {
		t.Errorf("error without credentials = %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	fake := awstest.New(t, webRole())
	s := newSigner(t, load())
	_, err = s.Bearer(context.Background(), BearerOptions{
		STSEndpoint: fake.URL, Partition: "aws-iso", IncludeEntity: true,
	})
	wantPermanent(t, err, "includeEntity")
	_, err = s.Bearer(context.Background(), BearerOptions{STSEndpoint: "http://no host", IncludeEntity: true})
	wantPermanent(t, err, "sts endpoint")
}

func TestCredentialsEndpointFailure(t *testing.T) {
	quiet(t)
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.URL)
	_, err := newSigner(t, load()).Bearer(context.Background(), BearerOptions{})
	var permanent *retry.PermanentError
	if err == nil || errors.As(err, &permanent) {
		t.Errorf("error = %v, want one worth a retry", err)
	}
	if calls != 1 {
		t.Errorf("%d calls, want 1: the flow retries, not the SDK", calls)
	}
}

func wantPermanent(t *testing.T, err error, text string) {
	t.Helper()
	var permanent *retry.PermanentError
	if !errors.As(err, &permanent) || !strings.Contains(err.Error(), text) {
		t.Errorf("error = %v, want a permanent one that names %s", err, text)
	}
}

// TestOtherPartitions: version 0.6 signed for aws only.
func TestOtherPartitions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		region, partition, custom string
		sts, iam                  endpoint
	}{
		{
			"us-west-2", "aws", "", endpoint{"https://sts.us-west-2.amazonaws.com/", "us-west-2"},
			endpoint{"https://iam.amazonaws.com/", "us-east-1"},
		},
		{
			"cn-north-1", "aws-cn", "", endpoint{"https://sts.cn-north-1.amazonaws.com.cn/", "cn-north-1"},
			endpoint{"https://iam.cn-north-1.amazonaws.com.cn/", "cn-north-1"},
		},
		{
			"us-gov-west-1", "aws-us-gov", "", endpoint{"https://sts.us-gov-west-1.amazonaws.com/", "us-gov-west-1"},
			endpoint{"https://iam.us-gov.amazonaws.com/", "us-gov-west-1"},
		},
		{
			"us-west-2", "aws", "https://sts.example/", endpoint{"https://sts.example/", "us-west-2"},
			endpoint{"https://iam.amazonaws.com/", "us-east-1"},
		},
		{
			"us-west-2", "aws", "sts.example:8443", endpoint{"https://sts.example:8443/", "us-west-2"},
			endpoint{"https://iam.amazonaws.com/", "us-east-1"},
		},
	}
	for _, tt := range tests {
		if got := partitionOf(tt.region); got != tt.partition {
			t.Errorf("partitionOf(%s) = %s", tt.region, got)
		}
		if got := stsEndpoint(tt.custom, tt.region, tt.partition); got != tt.sts {
			t.Errorf("stsEndpoint(%q, %s) = %v, want %v", tt.custom, tt.region, got, tt.sts)
		}
		if got, err := iamEndpoint(tt.partition); got != tt.iam || err != nil {
			t.Errorf("iamEndpoint(%s) = %v, %v, want %v", tt.partition, got, err, tt.iam)
		}
	}
}

func TestParseEntity(t *testing.T) {
	t.Parallel()
	tests := []struct {
		arn  string
		want entity
		ok   bool
	}{
		{"arn:aws:iam::1:role/web", entity{name: "web"}, true},
		{"arn:aws:iam::1:role/consul-ecs/web", entity{name: "web"}, true},
		{"arn:aws:iam::1:role/a/b/c/web", entity{name: "web"}, true},
		{"arn:aws:sts::1:assumed-role/web/session", entity{name: "web"}, true},
		{"arn:aws:sts::1:assumed-role/web/a/b", entity{name: "web"}, true},
		{"arn:aws-cn:iam::1:user/team/joe", entity{user: true, name: "joe"}, true},
		{"arn:aws:iam::1:root", entity{}, false},
		{"arn:aws:sts::1:federated-user/joe", entity{}, false},
		{"arn:aws:iam::1:role/", entity{}, false},
		{"arn:aws:iam::1:role", entity{}, false},
		{"web", entity{}, false},
		{"", entity{}, false},
	}
	for _, tt := range tests {
		got, err := parseEntity(tt.arn)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("parseEntity(%q) = %+v, %v, want %+v", tt.arn, got, err, tt.want)
		}
	}
}

func FuzzParseEntity(f *testing.F) {
	f.Add("arn:aws:iam::1:role/a/web")
	f.Add("arn:aws:sts::1:assumed-role//s")
	f.Fuzz(func(t *testing.T, s string) {
		e, err := parseEntity(s)
		if err != nil {
			return
		}
		if e.name == "" || strings.Contains(e.name, "/") {
			t.Errorf("parseEntity(%q) = %+v", s, e)
		}
	})
}

func TestCallerIdentityAnswers(t *testing.T) {
	t.Parallel()
	const good = `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">` +
		`<GetCallerIdentityResult>` +
		`<Arn>arn:aws:sts::1:assumed-role/r/s</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>`
	tests := []struct {
		name      string
		status    int
		body      string
		want      string
		errors    string
		permanent bool
	}{
		{"good", 200, good, "arn:aws:sts::1:assumed-role/r/s", "", false},
		{
			"refused", 403,
			`<ErrorResponse><Error><Code>ExpiredToken</Code><Message>too old</Message></Error></ErrorResponse>`, "",
			"ExpiredToken: too old", true,
		},
		{"refused without document", 403, "nope", "", "status 403", true},
		{"throttled", 429, "", "", "status 429", false},
		{"down", 503, "", "", "status 503", false},
		{"not XML", 200, "{}", "", "not a GetCallerIdentityResponse", false},
		{"no ARN", 200, `<GetCallerIdentityResponse></GetCallerIdentityResponse>`, "", "names no ARN", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			defer server.Close()
			req, _ := http.NewRequest(http.MethodPost, server.URL, nil)
			arn, err := callerIdentity(stsClient(), req)
			testkit.ErrorContains(t, err, tt.errors)
			if arn != tt.want {
				t.Errorf("arn = %q, want %q", arn, tt.want)
			}
			if got := errors.As(err, new(*retry.PermanentError)); got != tt.permanent {
				t.Errorf("%v is permanent: %v, want %v", err, got, tt.permanent)
			}
		})
	}
}

func FuzzParseCallerIdentity(f *testing.F) {
	f.Add([]byte("<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>a</Arn></GetCallerIdentityResult>" +
		"</GetCallerIdentityResponse>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if arn, err := parseCallerIdentity(body); (err == nil) != (arn != "") {
			t.Errorf("parseCallerIdentity = %q, %v", arn, err)
		}
	})
}

func TestUserAgent(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff("consul-ecs/v1.2.3 (linux)", load().userAgent()); diff != "" {
		t.Error(diff)
	}
}

// TestATaskWithoutARoleIsToldSo in place of the SDK's text about EC2, where it asks last.
func TestATaskWithoutARoleIsToldSo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"no EC2 IMDS role found, operation error ec2imds: GetMetadata": "the task has no task role, and the instance " +
			"gives none: set taskRoleArn",
		"failed to load credentials: timeout": "(does the task have a task role?): failed to load credentials: timeout",
	} {
		s := Signer{cfg: aws.Config{Credentials: aws.CredentialsProviderFunc(
			func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New(text) })}}
		_, err := s.Bearer(context.Background(), BearerOptions{})
		testkit.ErrorContains(t, err, want)
	}
}

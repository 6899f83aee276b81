package cluster_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/chaos"
)

const (
	whoAmI  = "Action=GetCallerIdentity&Version=2011-06-15"
	getRole = "Action=GetRole&Version=2010-05-08&RoleName=web"
)

// ask asks each kind of endpoint for something that it answers.
func (w *fixture) ask(t *testing.T, endpoint string) (*http.Response, error) {
	t.Helper()
	switch endpoint {
	case chaos.Metadata:
		return get(t.Context(), w.metadata+"/taskWithTags")
	case chaos.Credentials:
		return get(t.Context(), w.credentials)
	case chaos.Protection:
		return get(t.Context(), w.protection)
	case chaos.IAM:
		return w.signed(t, "iam", getRole, nil)
	case chaos.ECS:
		return w.signed(t, "ecs", "{}", map[string]string{"X-Amz-Target": "AmazonEC2ContainerServiceV20141113.DescribeTasks"})
	}
	return w.signed(t, "sts", whoAmI, nil)
}

// signed sends a request of the fixture's key.
func (w *fixture) signed(t *testing.T, service, body string, header map[string]string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.aws+"/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	sum := sha256.Sum256([]byte(body))
	credentials := aws.Credentials{AccessKeyID: w.key.AccessKeyID, SecretAccessKey: w.key.Secret, SessionToken: w.key.Token}
	if err := v4.NewSigner().SignHTTP(context.Background(), credentials, req, hex.EncodeToString(sum[:]), service, region, time.Now()); err != nil {
		t.Fatal(err)
	}
	return http.DefaultClient.Do(req)
}

// read returns the status, the kind and the text of an answer.
func read(t *testing.T, resp *http.Response, err error) (status int, kind, body string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(bytes.TrimSpace(text))
}

func TestErrorsHaveTheFormOfTheirEndpoint(t *testing.T) {
	t.Parallel()
	const (
		text   = "text/plain"
		json   = "application/json"
		xml    = "text/xml"
		amz    = "application/x-amz-json-1.1"
		unable = `"Unable to generate metadata for v4 task: '` + arn + `'"`
		slower = "You have reached maximum request limit."
	)
	for _, c := range []struct {
		endpoint string
		fault    int
		status   int
		kind     string
		body     string // all of it, or a part of XML
	}{
		{chaos.Metadata, 429, 429, text, slower},
		{chaos.Metadata, 500, 500, json, unable},
		{chaos.Metadata, 503, 503, json, unable},
		{chaos.Credentials, 429, 429, text, slower},
		{chaos.Credentials, 500, 500, json, `{"code":"InternalServerError","message":"CredentialsV2Request: Internal server error","HTTPErrorCode":500}`},
		{chaos.Credentials, 503, 503, json, `{"code":"CredentialsUninitialized","message":"CredentialsV2Request: Credentials uninitialized for ID","HTTPErrorCode":503}`},
		{chaos.Protection, 429, 429, text, slower},
		{chaos.Protection, 500, 500, json, `{"error":{"Arn":"` + arn + `","Code":"ServerException","Message":"Service Unavailable. Please try again later."}}`},
		{chaos.Protection, 503, 503, json, `{"error":{"Arn":"` + arn + `","Code":"ServerException","Message":"Service Unavailable. Please try again later."}}`},
		{chaos.STS, 429, 400, xml, "<Type>Sender</Type>\n    <Code>Throttling</Code>\n    <Message>Rate exceeded</Message>"},
		{chaos.STS, 500, 500, xml, "<Type>Receiver</Type>\n    <Code>InternalFailure</Code>"},
		{chaos.STS, 503, 503, xml, "<Type>Receiver</Type>\n    <Code>ServiceUnavailable</Code>"},
		{chaos.IAM, 429, 400, xml, `<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/">`},
		{chaos.IAM, 500, 500, xml, "<Code>InternalFailure</Code>"},
		{chaos.IAM, 503, 503, xml, "<Code>ServiceUnavailable</Code>"},
		{chaos.ECS, 429, 400, amz, `{"__type":"ThrottlingException","message":"Rate exceeded"}`},
		{chaos.ECS, 500, 500, amz, `{"__type":"ServerException","message":"Service Unavailable. Please try again later."}`},
		{chaos.ECS, 503, 503, amz, `{"__type":"ServiceUnavailable","message":"The request has failed due to a temporary failure of the server."}`},
	} {
		w := newFixture(t)
		w.faults.Begin(chaos.Endpoint{Name: c.endpoint, Status: c.fault}, 1)
		resp, err := w.ask(t, c.endpoint)
		status, kind, body := read(t, resp, err)
		request := fmt.Sprintf("%s %d", c.endpoint, c.fault)
		testkit.Equal(t, request+": status", status, c.status)
		testkit.Equal(t, request+": type", kind, c.kind)
		matches := body == c.body
		if c.kind == xml {
			matches = strings.Contains(body, c.body)
		}
		if !matches {
			t.Errorf("%s: body %s\nwant %s", request, body, c.body)
		}
	}
}

func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	endpoints := []string{chaos.Metadata, chaos.Credentials, chaos.Protection, chaos.STS, chaos.IAM, chaos.ECS}
	for _, endpoint := range endpoints {
		w := newFixture(t)
		resp, err := w.ask(t, endpoint)
		status, _, right := read(t, resp, err)
		if status != 200 {
			t.Fatalf("%s: %d %s", endpoint, status, right)
		}
		for wrong, is := range map[string]func(body string) bool{
			chaos.Empty: func(body string) bool {
				return body == "{}" || strings.HasPrefix(body, "<Get") && strings.Contains(body, `"></Get`) && len(body) < 120
			},
			// The request's ID differs each time, and its length does not.
			chaos.Truncated: func(body string) bool {
				n := len(right) / 2
				return len(body) >= n-1 && len(body) <= n+1 && body[:40] == right[:40]
			},
			chaos.Page: func(body string) bool { return strings.HasPrefix(body, "<html>") },
			chaos.Error: func(body string) bool {
				return strings.Contains(body, "InternalFailure") || strings.Contains(body, "ServerException") ||
					strings.Contains(body, "InternalServerError") || strings.Contains(body, "Unable to generate")
			},
		} {
			end := w.faults.Begin(chaos.Endpoint{Name: endpoint, Wrong: wrong}, 1)
			resp, err := w.ask(t, endpoint)
			status, _, body := read(t, resp, err)
			end()
			if status != 200 || !is(body) {
				t.Errorf("%s %s: %d %s", endpoint, wrong, status, body)
			}
		}
		resp, err = w.ask(t, endpoint)
		if status, _, body := read(t, resp, err); status != 200 || len(body) != len(right) {
			t.Errorf("%s after its faults: %d %s", endpoint, status, body)
		}
	}
}

func TestCutAnswersEndInTheirMiddle(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{chaos.Metadata, chaos.Credentials, chaos.Protection, chaos.STS, chaos.IAM, chaos.ECS} {
		w := newFixture(t)
		w.faults.Begin(chaos.Endpoint{Name: endpoint, Cut: true}, 1)
		resp, err := w.ask(t, endpoint)
		if err != nil {
			t.Fatalf("%s: %v, want the beginning of an answer", endpoint, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != io.ErrUnexpectedEOF {
			t.Errorf("%s: %v, want %v", endpoint, err, io.ErrUnexpectedEOF)
		}
		if len(body) == 0 || int64(len(body)) != resp.ContentLength/2 {
			t.Errorf("%s: %d of %d bytes, want half", endpoint, len(body), resp.ContentLength)
		}
	}
}

package awsutil

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// A throttled STS is asked again at once; a refusal is final.
func TestCallerIdentityIsRepeatedWhenThrottled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		first    int // status of the first two answers
		requests int64
		ok       bool
	}{{429, 3, true}, {503, 3, true}, {403, 1, false}} {
		var n atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); string(body) != callerIdentityForm {
				t.Errorf("body %q", body)
			}
			if n.Add(1) < 3 {
				w.WriteHeader(tt.first)
				return
			}
			fmt.Fprint(w,
				"<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:sts::1:assumed-role/r/s</Arn>"+
					"</GetCallerIdentityResult></GetCallerIdentityResponse>")
		}))
		req, _ := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(callerIdentityForm))
		_, err := callerIdentity(stsClient(), req)
		server.Close()
		if n.Load() != tt.requests || (err == nil) != tt.ok {
			t.Errorf("%d: %d requests, %v; want %d", tt.first, n.Load(), err, tt.requests)
		}
	}
}

// STS throttles with status 400, and its clock or ours may be off.
func TestSTSPermanentRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code, message, want string
		permanent           bool
	}{
		{"Throttling", "Rate exceeded", "status 400: Throttling: Rate exceeded", false},
		{"SignatureDoesNotMatch", "Signature expired: x is now earlier than y", "clock", true},
		{"SignatureDoesNotMatch", "Signature not yet current: x", "clock", true},
		{"InvalidClientTokenId", "The security token is invalid.", "check the task role", true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, "<ErrorResponse><Error><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>",
				tt.code, tt.message)
		}))
		req, _ := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(callerIdentityForm))
		_, err := callerIdentity(stsClient(), req)
		server.Close()
		_, permanent := errors.AsType[*retry.PermanentError](err)
		testkit.ErrorContains(t, err, tt.want)
		if permanent != tt.permanent {
			t.Errorf("%s: %v is permanent: %v, want %v", tt.code, err, permanent, tt.permanent)
		}
	}
}

// What has no key is no credentials: the SDK would cache it permanently.
func TestCredentialsHaveAKey(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{"RoleArn":"arn:r","AccessKeyId":"A","SecretAccessKey":"S","Token":"T"}`: "",
		`{}`: "the answer has no access key",
		`{"code":"InternalServerError","message":"x"}`: "the answer has no access key",
		`{"AccessKeyId":"A"}`:                          "the answer has no access key",
		`"text"`:                                       "the answer is no credentials document",
		`{"AccessKeyId":`:                              "", // for the provider
		`<html>`:                                       "",
	} {
		t.Run(document, func(t *testing.T) {
			t.Parallel()
			role := &taskRole{}
			testkit.ErrorContains(t, role.remember([]byte(document)), want)
			if got := role.ARN(); (got == "arn:r") != strings.Contains(document, "arn:r") {
				t.Errorf("role %q", got)
			}
		})
	}
}

package awsutil

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/smithy-go/logging"
)

// TestTheSDKIsSilent: its own lines would stand between ours, in another form.
func TestTheSDKIsSilent(t *testing.T) {
	t.Parallel()
	c, err := LoadConfig(t.Context(), LoadOptions{Region: "us-west-2"})
	if err != nil {
		t.Fatal(err)
	}
	if _, silent := c.Logger.(logging.Nop); !silent {
		t.Errorf("it logs to a %T", c.Logger)
	}
}

// TestCredentialsOfTheTaskRoleAreNotAwaitedForEver: the endpoint takes the request and does
// not answer.
func TestCredentialsOfTheTaskRoleAreNotAwaitedForEver(t *testing.T) {
	given := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		select {
		case <-given:
		default:
			close(given)
		}
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.URL)
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, "/nonexistent")
	}
	cfg, err := LoadConfig(t.Context(), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := cfg.Credentials.Retrieve(ctx)
		ended <- err
	}()
	select {
	case <-given: // the attempt is over
	case <-time.After(4 * RequestTimeout):
		t.Error("the request has no limit")
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("credentials without an answer")
	}
}

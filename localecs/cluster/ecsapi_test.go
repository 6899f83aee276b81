package cluster

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// The ECS API is where STS and IAM are, for those who ask for it.
func TestECSAPIAtTheGateway(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return w.Fabric().Infra().DialContext(ctx, network, address)
	}}}
	ask := func(target string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.AWSEndpoint(), strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Amz-Target", target)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const target, refused = "AmazonEC2ContainerServiceV20141113.ListTasks", "<Code>MissingAuthenticationToken</Code>"
	if got := ask(target); !strings.Contains(got, refused) {
		t.Errorf("without an ECS API: %s", got)
	}
	w.endpoints.serveECS(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ECS") }))
	if got := ask(target); got != "ECS" {
		t.Errorf("got %s", got)
	}
	if got := ask("Other.ListTasks"); !strings.Contains(got, refused) {
		t.Errorf("STS and IAM: %s", got)
	}
}

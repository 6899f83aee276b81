package awsutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

const task = `{"Cluster":"default","TaskARN":"arn:aws:ecs:us-west-2:123456789012:task/default/abc","Family":"web",` +
	`"Containers":[{"Name":"app"},{"Name":"self"}]}`

// container answers for the base URI, that of the container self; all else is
// the handler's.
func container(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, taskPath) {
			handler(w, r)
			return
		}
		fmt.Fprint(w, `{"DockerId":"id","Name":"self"}`)
	}
}

// serveMetadata starts an endpoint, and returns a client that waits for it, however slow the machine is.
func serveMetadata(t *testing.T, handler http.HandlerFunc) *MetadataClient {
	t.Helper()
	server := httptest.NewServer(container(handler))
	t.Cleanup(server.Close)
	c := NewMetadataClient(server.URL + "/v4/container-id")
	c.conn.timeout = testkit.Patience
	return c
}

func TestTask(t *testing.T) {
	t.Parallel()
	c := serveMetadata(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.String() != "/v4/container-id/task" {
			t.Errorf("request = %s %s", r.Method, r.URL)
		}
		fmt.Fprint(w, task)
	})
	got, err := c.Task(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got.ID() != "abc" || got.Family != "web" {
		t.Errorf("task = %+v, want abc of web", got)
	}
}

// TestOnlyAGoodAnswerIsATask: 0.6 took any JSON, whatever the status,
// for a task without containers.
func TestOnlyAGoodAnswerIsATask(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"error with a task in it", 500, task, "status 500"},
		{"error document", 404, `{"message":"not found"}`, `status 404: {"message":"not found"}`},
		{"throttled", 429, "Too Many\nRequests", "status 429: Too Many Requests"},
		{"redirect", 302, "", "status 302: empty answer"},
		{"no content", 204, "", "status 204"},
		{"empty object", 200, `{}`, "TaskARN"},
		{"no containers", 200, strings.Replace(task, `{"Name":"app"},{"Name":"self"}`, "", 1), "lists no container"},
		{
			"without the asking container", 200, strings.Replace(task, "self", "other", 1),
			`does not list this container, "self"`,
		},
		{"empty", 200, ``, "want a JSON object"},
		{"garbage", 200, `<html>`, "want a JSON object"},
		{"cut off", 200, task[:40], "/v4/container-id/task"},
		{"too long", 200, `{"x":"` + strings.Repeat("x", maxMetadata) + `"}`, "longer than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := serveMetadata(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			})
			got, err := c.Task(context.Background())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("task = %+v, error = %v, want one with %q", got, err, tt.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "read task metadata") {
				t.Errorf("error = %v does not say what was tried", err)
			}
		})
	}
}

// TestHungEndpointEnds: 0.6 waited for ever.
func TestHungEndpointEnds(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := serveMetadata(t, func(http.ResponseWriter, *http.Request) { <-release })
	c.conn.timeout = MetadataTimeout
	defer close(release)
	start := time.Now()
	_, err := c.Task(context.Background())
	if err == nil {
		t.Error("no error")
	}
	if d := time.Since(start); d < MetadataTimeout || d > testkit.Patience {
		t.Errorf("ended after %s, want %s", d, MetadataTimeout)
	}
}

// TestHungEndpointEndsAfterTheTimeout: in fake time, so to the moment.
func TestHungEndpointEndsAfterTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewMetadataClient("http://192.0.2.1")
		c.conn.dial = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { theirs.Close() })
			return ours, nil
		}
		start := time.Now()
		if _, err := c.Task(t.Context()); err == nil || time.Since(start) != MetadataTimeout {
			t.Errorf("error = %v after %s, want one after %s", err, time.Since(start), MetadataTimeout)
		}
	})
}

func TestContextEndsTheRead(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	c := serveMetadata(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	// The timeout would be another error.
	if _, err := c.Task(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want the context's", err)
	}
}

// countConnections serves the task, and counts the connections that its client makes.
func countConnections(t *testing.T) (*httptest.Server, *MetadataClient, *atomic.Int32) {
	var conns atomic.Int32
	server := httptest.NewUnstartedServer(container(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, task)
	}))
	server.Config.ConnState = stateCounter(&conns)
	server.Start()
	t.Cleanup(server.Close)
	c := NewMetadataClient(server.URL)
	c.conn.timeout = testkit.Patience
	return server, c, &conns
}

func TestConnectionIsKept(t *testing.T) {
	t.Parallel()
	_, c, conns := countConnections(t)
	for range 5 {
		if _, err := c.Task(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if got := conns.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}

func TestContainerIsReadOnce(t *testing.T) {
	t.Parallel()
	var paths []string
	own := http.StatusInternalServerError
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		if r.URL.Path == "/v4/id" {
			w.WriteHeader(own)
			fmt.Fprint(w, `{"Name":"self"}`)
			return
		}
		fmt.Fprint(w, task)
	}))
	defer server.Close()
	c := NewMetadataClient(server.URL + "/v4/id")
	c.conn.timeout = testkit.Patience
	if _, err := c.Task(t.Context()); err == nil || !strings.Contains(err.Error(), "/v4/id: status 500") {
		t.Errorf("a container that cannot be read: %v", err)
	}
	own = http.StatusOK
	for range 3 {
		if _, err := c.Task(t.Context()); err != nil {
			t.Error(err)
		}
	}
	want := []string{"/v4/id/task", "/v4/id", "/v4/id/task", "/v4/id", "/v4/id/task", "/v4/id/task"}
	if !slices.Equal(paths, want) {
		t.Errorf("requests %q, want %q", paths, want)
	}
}

// TestEndpointThatServesTheTaskOnly: earlier versions read nothing else. An endpoint that
// fails is none.
func TestEndpointThatServesTheTaskOnly(t *testing.T) {
	t.Parallel()
	empty := strings.Replace(task, `{"Name":"app"},{"Name":"self"}`, "", 1)
	for _, own := range []struct {
		status int
		body   string
		want   string // in the error
	}{
		{200, `{}`, ""}, {200, task, ""}, {404, "not found", ""},
		{200, `"error"`, "json: "}, {200, "", "JSON input"}, {500, "", "status 500"}, {403, "", "status 403"},
		{429, "", "status 429"},
	} {
		answer := task
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, taskPath) {
				fmt.Fprint(w, answer)
				return
			}
			w.WriteHeader(own.status)
			fmt.Fprint(w, own.body)
		}))
		t.Cleanup(server.Close)
		c := NewMetadataClient(server.URL)
		c.conn.timeout = testkit.Patience
		got, err := c.Task(t.Context())
		testkit.ErrorContains(t, err, own.want)
		if err == nil && got.ID() != "abc" {
			t.Errorf("%d %q: got %+v, want task abc", own.status, own.body, got)
		}
		if answer = empty; own.want == "" {
			if got, err := c.Task(t.Context()); err == nil || !strings.Contains(err.Error(), "lists no container") {
				t.Errorf("%d %q: a task without containers: %+v, %v", own.status, own.body, got, err)
			}
		}
	}
}

// TestChangeAfterEqualAnswersIsSeen: answers that are equal to the last one are
// not parsed again, and a bad one between them changes nothing.
func TestChangeAfterEqualAnswersIsSeen(t *testing.T) {
	t.Parallel()
	body := task
	c := serveMetadata(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, body) })
	for _, next := range []struct {
		body, family string
		fails        bool
	}{
		{task, "web", false},
		{task, "web", false},
		{task[:40], "", true},
		{task, "web", false},
		{strings.Replace(task, `"web"`, `"db!"`, 1), "db!", false},
		{task, "web", false},
	} {
		body = next.body
		got, err := c.Task(t.Context())
		if got.Family != next.family || (err != nil) != next.fails {
			t.Errorf("%s: family %q, %v", next.body, got.Family, err)
		}
	}
}

// TestProxyIsIgnored: the address is link-local, a proxy cannot reach it.
func TestProxyIsIgnored(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:1")
	for base, want := range map[string]string{
		"http://169.254.170.2/v4/id":     "169.254.170.2:80",
		"http://[fd00:ec2::23]:81/v4/id": "[fd00:ec2::23]:81",
	} {
		c := NewMetadataClient(base)
		var dialled string
		c.conn.dial = func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = address
			return nil, errors.New("unreachable")
		}
		if _, err := c.Task(t.Context()); err == nil || dialled != want {
			t.Errorf("%s: dialled %s, %v", base, dialled, err)
		}
	}
}

// TestClosedConnectionIsReplaced: the endpoint closes connections after some seconds
// without a request.
func TestClosedConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	server, c, conns := countConnections(t)
	for range 3 {
		if _, err := c.Task(t.Context()); err != nil {
			t.Fatal(err)
		}
		server.CloseClientConnections()
	}
	if got := conns.Load(); got != 3 {
		t.Errorf("%d connections, want 3", got)
	}
}

// TestConnectionThatTheEndpointCloses: with or without a length of the answer.
func TestConnectionThatTheEndpointCloses(t *testing.T) {
	t.Parallel()
	c := serveMetadata(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.(http.Flusher).Flush()
		fmt.Fprint(w, task)
	})
	for range 3 {
		if got, err := c.Task(t.Context()); err != nil || got.Family != "web" {
			t.Errorf("family %q, %v", got.Family, err)
		}
	}
}

// TestReadAfterAnInterruptedOne: nothing of an answer that came too late is taken for
// another request's.
func TestReadAfterAnInterruptedOne(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var late atomic.Bool
	c := serveMetadata(t, func(w http.ResponseWriter, r *http.Request) {
		if late.Swap(false) {
			cancel()
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, task)
	})
	for i := range 3 {
		late.Store(i == 1)
		if i == 1 {
			if _, err := c.Task(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want the context's", err)
			}
			continue
		}
		if got, err := c.Task(t.Context()); err != nil || got.Family != "web" {
			t.Errorf("family %q, %v", got.Family, err)
		}
	}
}

// TestOneReadAtATime: others wait for their turn, as long as their contexts.
func TestOneReadAtATime(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 2), make(chan struct{})
	c := serveMetadata(t, func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-release
		fmt.Fprint(w, task)
	})
	first := make(chan error)
	go func() {
		_, err := c.Task(t.Context())
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Task(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want the context's", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestMalformedBaseURI(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "http://no host", "\x00"} {
		if _, err := NewMetadataClient(base).Task(context.Background()); err == nil ||
			!strings.HasPrefix(err.Error(), "read task metadata") {
			t.Errorf("base %q: error = %v", base, err)
		}
	}
	_, err := NewMetadataClient("").Task(context.Background())
	if want := "read task metadata: ECS_CONTAINER_METADATA_URI_V4 is not set"; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func stateCounter(n *atomic.Int32) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			n.Add(1)
		}
	}
}

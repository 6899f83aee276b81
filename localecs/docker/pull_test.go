package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/moby/moby/client"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// registry is an engine without images, whose pulls a test feeds.
type registry struct {
	*store
	log   bytes.Buffer
	pulls chan *io.PipeWriter // one for each pull that has started

	mu  sync.Mutex
	has map[string]bool
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{pulls: make(chan *io.PipeWriter, 10), has: map[string]bool{}}
	api, err := client.New(client.WithAPIVersion("1.41"), client.WithHTTPClient(&http.Client{Transport: testkit.RoundTripper(r.answer)}))
	if err != nil {
		t.Fatal(err)
	}
	r.store = newStore(api, nil, hclog.New(&hclog.LoggerOptions{Output: &r.log, DisableTime: true}))
	return r
}

func (r *registry) answer(q *http.Request) (*http.Response, error) {
	status, body := http.StatusOK, io.ReadCloser(nil)
	if strings.HasSuffix(q.URL.Path, "/images/create") {
		read, write := io.Pipe()
		context.AfterFunc(q.Context(), func() { write.CloseWithError(q.Context().Err()) })
		r.pulls <- write
		body = read
	} else {
		r.mu.Lock()
		defer r.mu.Unlock()
		name := strings.TrimSuffix(strings.TrimPrefix(q.URL.Path, "/v1.41/images/"), "/json")
		text := fmt.Sprintf(`{"Id":"sha256:%s","Config":{"User":"7"}}`, name)
		if !r.has[name] {
			status, text = http.StatusNotFound, `{"message":"No such image"}`
		}
		body = io.NopCloser(strings.NewReader(text))
	}
	return &http.Response{StatusCode: status, Body: body, Header: http.Header{"Content-Type": {"application/json"}}, Request: q}, nil
}

// finish ends a pull; the engine has the image then.
func (r *registry) finish(name string, pull *io.PipeWriter) {
	r.mu.Lock()
	r.has[name] = true
	r.mu.Unlock()
	pull.Close()
}

// result is what a Pull has returned.
type pullResult struct {
	image runtime.Image
	err   error
}

func (r *registry) start(ctx context.Context, name string) <-chan pullResult {
	done := make(chan pullResult, 1)
	go func() {
		i, err := r.Pull(ctx, name)
		done <- pullResult{i, err}
	}()
	return done
}

func TestPullEndsWithItsContextAndHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(t)
		ctx, cancel := context.WithCancel(t.Context())
		slow := r.start(ctx, "slow")
		<-r.pulls
		quick := r.start(t.Context(), "quick")
		r.finish("quick", <-r.pulls)
		if got := <-quick; got.err != nil || got.image.User != "7" {
			t.Errorf("quick: %+v", got)
		}
		cancel()
		if got := <-slow; !errors.Is(got.err, context.Canceled) {
			t.Errorf("slow: %v", got.err)
		}
	})
}

// The others go on when the caller that has started a pull gives it up.
func TestImageIsPulledOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(t)
		ctx, cancel := context.WithCancel(t.Context())
		first := r.start(ctx, "web")
		<-r.pulls
		second, third := r.start(t.Context(), "web"), r.start(t.Context(), "web")
		synctest.Wait()
		if len(r.pulls) != 0 {
			t.Error("the image is pulled twice at a time")
		}
		cancel()
		if got := <-first; !errors.Is(got.err, context.Canceled) {
			t.Errorf("first: %v", got.err)
		}
		r.finish("web", <-r.pulls)
		for _, done := range []<-chan pullResult{second, third, r.start(t.Context(), "web")} {
			if got := <-done; got.err != nil {
				t.Error(got.err)
			}
		}
		if len(r.pulls) != 0 {
			t.Error("the image is pulled again")
		}
	})
}

func TestLongPullIsLoggedUntilItIsSilentTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(t)
		done := r.start(t.Context(), "web")
		pull := <-r.pulls
		for _, l := range []string{
			`{"status":"Pulling fs layer","id":"a"}`,
			`{"status":"Downloading","id":"a","progressDetail":{"current":1000000,"total":30000000}}`,
			`{"status":"Downloading","id":"b","progressDetail":{"current":2000000,"total":2000000}}`,
			`{"status":"Downloading","id":"a","progressDetail":{"current":15000000,"total":30000000}}`,
		} {
			if _, err := io.WriteString(pull, l+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if got := <-done; !errors.Is(got.err, errSilent) || time.Since(began) != silence {
			t.Errorf("%v after %s, want %v", got.err, time.Since(began), errSilent)
		}
		synctest.Wait()
		const want = "[WARN]  image is still being pulled: object=web elapsed=10s status=\"17 of 32 MB downloaded\"\n"
		if !strings.HasPrefix(r.log.String(), want) || strings.Count(r.log.String(), "\n") < 11 {
			t.Errorf("log %q, want a line every 10 s, first %q", r.log.String(), want)
		}
	})
}

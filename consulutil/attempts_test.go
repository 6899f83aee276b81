package consulutil

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// answers returns the answers of a server in order; the last one repeats. Zero is a refused connection.
func answers(statuses []int, requests *[]string) testkit.RoundTripper {
	return func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		*requests = append(*requests, string(body))
		status := statuses[min(len(*requests), len(statuses))-1]
		if status == 0 {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return &http.Response{StatusCode: status, Status: http.StatusText(status),
			Body: io.NopCloser(strings.NewReader("answer"))}, nil
	}
}

func TestAttemptsRepeatWhatMayChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statuses []int
		want     int // 0: an error
		made     int
	}{
		"allowed at once":      {[]int{200}, 200, 1},
		"no leader, then one":  {[]int{500, 200}, 200, 2},
		"too many requests":    {[]int{429, 429, 200}, 200, 3},
		"never a leader":       {[]int{500}, 500, 3},
		"refused, then there":  {[]int{0, 0, 200}, 200, 3},
		"never there":          {[]int{0}, 0, 3},
		"forbidden is not now": {[]int{403, 200}, 403, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var requests []string
				transport := Attempts(3, 5*time.Second, hclog.NewNullLogger())(answers(c.statuses, &requests))
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://consul",
					strings.NewReader("asked"))
				if err != nil {
					t.Fatal(err)
				}
				answer, err := transport.RoundTrip(request)
				status := 0
				if err == nil {
					status = answer.StatusCode
					if text, _ := io.ReadAll(answer.Body); string(text) != "answer" {
						t.Errorf("body %q", text)
					}
				}
				if status != c.want {
					t.Errorf("status: got %d (%v), want %d", status, err, c.want)
				}
				testkit.Equal(t, "requests", strings.Join(requests, ""), strings.Repeat("asked", c.made))
			})
		})
	}
}

func TestAttemptIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		silent := testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://consul", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Attempts(3, 5*time.Second, hclog.NewNullLogger())(silent).RoundTrip(request)
		testkit.Equal(t, "error", err, context.DeadlineExceeded)
		if took := time.Since(start); took < 15*time.Second || took > 18*time.Second {
			t.Errorf("took %s, want the end of the third attempt", took)
		}
	})
}

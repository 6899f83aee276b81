package consulutil

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestRequestsHaveTheirLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options Options
		own     time.Duration
		want    time.Duration
	}{
		"of every client":  {Options{}, 0, RequestTimeout},
		"of the options":   {Options{Timeout: time.Minute}, 0, time.Minute},
		"of the request":   {Options{}, time.Hour, time.Hour},
		"shorter than all": {Options{Timeout: time.Minute}, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tc.options.Address = "10.0.0.1:8500"
				tc.options.Wrap = func(http.RoundTripper) http.RoundTripper {
					return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
						<-r.Context().Done()
						return nil, r.Context().Err()
					})
				}
				ctx := t.Context()
				if tc.own > 0 {
					ctx = WithLimit(ctx, tc.own)
				}
				start := time.Now()
				_, err := ReadToken(ctx, newClient(t, tc.options), "secret")
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(start); took != tc.want {
					t.Errorf("ended after %s, want %s", took, tc.want)
				}
			})
		})
	}
}

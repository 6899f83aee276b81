package images

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/meshtask/consul-ecs/internal/retry"
)

// leastPause bounds the rate of requests to a registry that demands no pause in fact.
const leastPause = time.Second

// obedient repeats a request after the pause that a registry demands by Retry-After, if the time of the
// image allows it.
type obedient struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o *obedient) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		resp, err := o.inner.RoundTrip(req)
		if err != nil || req.Body != nil {
			return resp, err
		}
		pause, demanded := demandedPause(resp, time.Now())
		if !demanded {
			return resp, nil
		}
		if deadline, bounded := req.Context().Deadline(); bounded && time.Until(deadline) < pause {
			err := transport.CheckError(resp, http.StatusOK)
			resp.Body.Close()
			return nil, &pauseError{pause, err}
		}
		resp.Body.Close()
		if err := retry.Sleep(req.Context(), pause); err != nil {
			return nil, err
		}
	}
}

// demandedPause returns how long a registry that cannot serve now wants no request, and false when it
// does not say so.
func demandedPause(resp *http.Response, now time.Time) (time.Duration, bool) {
	after := resp.Header.Get("Retry-After")
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	if seconds, err := strconv.Atoi(after); err == nil {
		return max(leastPause, time.Duration(seconds)*time.Second), true
	}
	at, err := http.ParseTime(after)
	return max(leastPause, at.Sub(now)), err == nil
}

// pauseError is about a pause that is longer than the time of the image. It has no method Temporary, so
// that the request is not repeated earlier.
type pauseError struct {
	pause time.Duration
	err   error
}

func (e *pauseError) Error() string {
	return fmt.Sprintf("a pause of %s is demanded: %s", e.pause.Round(time.Second), e.err)
}

func (e *pauseError) Unwrap() error { return e.err }

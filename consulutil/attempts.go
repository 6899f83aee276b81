package consulutil

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// Attempts returns what Options.Wrap takes for requests that are made up to n times, each
// with a limit: again after an answer with 429 or 5xx and after a connection that was not
// made, and at once back after any other answer. It is for requests whose repetition
// changes nothing. The last answer is the caller's, whatever its status.
func Attempts(n int, each time.Duration, log hclog.Logger) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &attempts{next, n, each, log} }
}

type attempts struct {
	next http.RoundTripper
	most int
	each time.Duration
	log  hclog.Logger
}

// errBusy is an answer that another attempt may change.
type errBusy struct{ answer *http.Response }

func (e *errBusy) Error() string { return "the server answered " + e.answer.Status }

// RoundTrip implements http.RoundTripper.
func (a *attempts) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read the request's body: %w", err)
		}
	}
	var answer *http.Response
	made := 0
	classify := func(err error) retry.Class {
		if made == a.most {
			return retry.Permanent
		}
		return classifyTransport(err) // an answer is none, and worth another attempt
	}
	policy := retry.Policy{Base: 250 * time.Millisecond, Max: time.Second}
	err := retry.Do(r.Context(), policy, a.log, "send the request to Consul",
		classify, func(ctx context.Context) (err error) {
			made++
			answer, err = a.once(ctx, r, body)
			return err
		})
	if busy, is := errors.AsType[*errBusy](err); is {
		return busy.answer, nil
	}
	if permanent, is := errors.AsType[*retry.PermanentError](err); is {
		return nil, permanent.Err
	}
	return answer, err
}

// once makes one attempt and reads its answer, so that the limit bounds both.
func (a *attempts) once(ctx context.Context, r *http.Request, body []byte) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, a.each)
	defer cancel()
	again := r.Clone(ctx)
	if r.Body != nil {
		again.Body = io.NopCloser(bytes.NewReader(body))
	}
	answer, err := a.next.RoundTrip(again)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	if answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= http.StatusInternalServerError {
		return nil, &errBusy{answer}
	}
	return answer, nil
}

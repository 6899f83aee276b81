package broker

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

// refusal is an answer that is not 2xx.
type refusal struct {
	status int
	code   string
	reason string
	// after is the value of Retry-After, if not zero.
	after time.Duration
	// cause is for the logs, and not for the caller.
	cause error
}

func (r *refusal) Error() string {
	if r.cause == nil {
		return r.reason
	}
	return r.reason + ": " + r.cause.Error()
}

// because returns the refusal with a cause.
func (r *refusal) because(cause error) *refusal {
	c := *r
	c.cause = cause
	return &c
}

// maxReason is the length in bytes at which a reason is cut off: it may quote texts of the
// request, and receivers read at most receiver.MaxBody of an answer.
const maxReason = 2 << 10

// maxForeign is the length in bytes at which a text of a caller is cut off for the logs.
const maxForeign = 64

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, reason: receiver.Cut(fmt.Sprintf(format, args...), maxReason)}
}

// short returns what the logs have of a text of a caller.
func short(text string) string { return receiver.Cut(text, maxForeign) }

// later returns a refusal that waiting can change.
func later(status int, code string, after time.Duration, format string, args ...any) *refusal {
	r := refuse(status, code, format, args...)
	r.after = after
	return r
}

// backendRefusal returns the answer to a failure of the backend. One that waiting does not change and that
// is no mistake of the task is an alarm.
func (l *leadership) backendRefusal(r *request, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case consulutil.Classify(err).Retryable():
		return later(http.StatusServiceUnavailable, receiver.BackendFailed, busyPause, "%s: %v", what, err)
	case errors.Is(err, backend.ErrPolicy):
		return refuse(http.StatusUnprocessableEntity, "policies", "%s: %v", what, err)
	case errors.Is(err, backend.ErrTTL):
		return refuse(http.StatusUnprocessableEntity, "ttl", "%s: %v", what, err)
	case errors.Is(err, backend.ErrExpired), errors.Is(err, backend.ErrUsed):
		return refuse(http.StatusGone, "expired", "%s: %v", what, err)
	}
	cause := err
	if failed, ok := errors.AsType[*backend.Error](err); ok {
		cause = failed.Err // without the task
	}
	if l.alarms.raise(cause.Error()) {
		l.opt.Metrics.alarms.Add(1)
		l.broker.audit.write(line{
			Request: r.id, Task: r.in.TaskARN, Decision: "backend_refused", Reason: err.Error(), Alarm: true,
		})
		l.opt.Log.Error("the backend refuses the broker, tasks get no tokens", logkey.TaskARN, r.in.TaskARN,
			logkey.Error, err)
	}
	return refuse(http.StatusUnprocessableEntity, receiver.BackendFailed, "%s: %v", what, err)
}

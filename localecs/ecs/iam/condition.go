package iam

import (
	"context"
	"net/http"
	"time"
)

// Condition is the fault condition of one request. The zero value is no fault.
type Condition struct {
	// Ahead is how far the clock of the endpoint is ahead; negative if it is behind.
	Ahead time.Duration
	// NoTags hides the tags of roles (IAM) and tasks (ECS).
	NoTags bool
}

type key struct{}

// With returns r with the condition.
func With(r *http.Request, c Condition) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), key{}, c))
}

// ConditionOf returns the condition of a request.
func ConditionOf(r *http.Request) Condition {
	c, _ := r.Context().Value(key{}).(Condition)
	return c
}

// Shift returns a time on the clock of the endpoint. The zero time stays zero.
func (c Condition) Shift(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(c.Ahead)
}

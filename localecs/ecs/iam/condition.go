package iam

import (
	"context"
	"net/http"
	"time"
)

// Condition is that of one request. The zero one is all right.
type Condition struct {
	// Ahead is by how much the endpoint's clock is; negative: behind.
	Ahead time.Duration
	// NoTags hides the tags of roles (IAM) and tasks (ECS).
	NoTags bool
}

type key struct{}

// With is r under the condition.
func With(r *http.Request, c Condition) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), key{}, c))
}

// Of is a request's condition.
func Of(r *http.Request) Condition {
	c, _ := r.Context().Value(key{}).(Condition)
	return c
}

// Shift is a moment by the endpoint's clock. One that has not come stays zero.
func (c Condition) Shift(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(c.Ahead)
}

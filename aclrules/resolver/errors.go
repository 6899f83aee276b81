package resolver

import (
	"errors"
	"fmt"
	"strings"
)

// What keeps a rule from a subject. ErrDangling and ErrElsewhere are the
// server's way, too, and leave the answer complete; the others do not.
var (
	ErrDangling   = errors.New("it does not exist")
	ErrElsewhere  = errors.New("it does not apply in this datacenter")
	ErrUnreadable = errors.New("it may not be read")
	ErrEnterprise = errors.New("namespaces need Consul Enterprise, whose rules are not known here")
)

// ErrRefused means that the subject has no rights at all, not even those of the
// default policy: there is no token to speak of.
var ErrRefused = errors.New("the server refuses it")

// Why the server refuses a subject. ErrNothing: rules match a login, and what
// they name does not exist. ErrBadName: one matching rule that makes no valid
// name spoils the whole login.
var (
	ErrNotFound = fmt.Errorf("there is no such token: %w", ErrRefused)
	ErrExpired  = fmt.Errorf("the token has expired: %w", ErrRefused)
	ErrNoMatch  = fmt.Errorf("no binding rule matches the login: %w", ErrRefused)
	ErrNothing  = fmt.Errorf("the binding rules grant nothing that exists: %w", ErrRefused)
	ErrBadName  = fmt.Errorf("a login with it fails: %w", ErrRefused)
)

// Complete tells whether nothing that counts is missing because of an error
// that a visitor got.
func Complete(err error) bool {
	return errors.Is(err, ErrDangling) || errors.Is(err, ErrElsewhere)
}

// sourceError is an error about something at a source.
type sourceError struct {
	source Source
	err    error
}

func (e *sourceError) Error() string { return e.source.String() + ": " + e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// Source is the way from a subject to a rule: each step is a link.
type Source []string

// String is the way as people read it: token 3f2a… → role "ops" → policy "web".
func (s Source) String() string { return strings.Join(s, " → ") }

// step is the way one link further. The way so far is never changed.
func (s Source) step(format string, args ...any) Source {
	return append(s[:len(s):len(s)], fmt.Sprintf(format, args...))
}

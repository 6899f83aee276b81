package aclrules

import (
	"errors"
	"fmt"
	"strings"
)

// Reasons why a rule does not reach a subject. With ErrDangling and errElsewhere
// the server ignores the rule too, so the answer is complete; with the others it is
// not. errOtherTemplate is a note only: the rule applies.
var (
	ErrDangling      = errors.New("it does not exist")
	errElsewhere     = errors.New("it applies in other datacenters only")
	errOtherTemplate = errors.New("the server's template for it differs from the one this program knows, and the " +
		"server's applies")
	ErrUnreadable = errors.New("it is not readable with this token")
	ErrEnterprise = errors.New("namespaces need Consul Enterprise, whose rules are not known here")
)

// ErrDisabled means that the server enforces no ACLs: every request
// is allowed there.
var ErrDisabled = errors.New("ACLs are disabled on the server")

// ErrRefused means that the server accepts no token or login of the subject, which
// then does not even have the rights of the default policy.
var ErrRefused = errors.New("the server refuses it")

// Why the server refuses a subject; each matches ErrRefused. errNothing: rules
// match a login, and what they name does not exist. errBadName: one matching
// rule that yields an invalid name fails the whole login.
var (
	ErrNotFound error = refusal("unknown to the server (wrong, deleted or expired)")
	ErrExpired  error = refusal("it has expired")
	errNoMatch  error = refusal("no binding rule matches, so the login is denied")
	errNothing  error = refusal("the binding rules grant nothing that exists, so the login is denied")
	errBadName  error = refusal("this rule alone makes the whole login fail")
)

type refusal string

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == ErrRefused }

// complete reports whether an answer is complete despite an error that a visitor got.
func complete(err error) bool {
	return errors.Is(err, ErrDangling) || errors.Is(err, errElsewhere) || errors.Is(err, errOtherTemplate)
}

// elsewhere is an errElsewhere that names the datacenters.
type elsewhere struct {
	only []string
	here string
}

func (e *elsewhere) Error() string {
	return fmt.Sprintf("it applies in %s only, and this is %s", strings.Join(e.only, ", "), e.here)
}

func (e *elsewhere) Is(target error) bool { return target == errElsewhere }

// sourceError is an error about something at a source.
type sourceError struct {
	source Source
	err    error
}

func (e *sourceError) Error() string { return e.source.String() + ": " + e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// Source is the way from a subject to a rule: each step is a link.
type Source []string

// String returns the chain for display: token 3f2a… → role "ops" → policy "web".
func (s Source) String() string { return strings.Join(s, " → ") }

// step returns the chain with one more link. The receiver is not changed.
func (s Source) step(format string, args ...any) Source {
	return append(s[:len(s):len(s)], fmt.Sprintf(format, args...))
}

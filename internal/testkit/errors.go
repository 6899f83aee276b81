package testkit

import (
	"errors"
	"strings"
	"testing"
)

// WantError holds an error against its kind E and its whole text.
func WantError[E error](t testing.TB, err error, want string) {
	t.Helper()
	var e E
	if !errors.As(err, &e) || e.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// ErrorContains holds an error against a part of its text. Where want is empty, no error is wanted.
func ErrorContains(t testing.TB, err error, want string) {
	t.Helper()
	switch {
	case err == nil && want != "":
		t.Errorf("no error, want one with %q", want)
	case err != nil && want == "":
		t.Errorf("error %v, want none", err)
	case err != nil && !strings.Contains(err.Error(), want):
		t.Errorf("error %v, want one with %q", err, want)
	}
}

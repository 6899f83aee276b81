package testkit

import (
	"errors"
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

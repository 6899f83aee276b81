package cluster

import (
	"errors"
	"testing"
	"testing/synctest"
)

func TestCloseWaitsForOperations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o operations
		first, err := o.begin()
		if err != nil {
			t.Fatal(err)
		}
		second, err := o.begin()
		if err != nil {
			t.Fatal(err)
		}
		wait, ended := o.close(), false
		go func() { wait(); ended = true }()
		if _, err := o.begin(); !errors.Is(err, errClosed) {
			t.Errorf("after Close: %v", err)
		}
		first()
		synctest.Wait()
		if ended {
			t.Error("it has not waited for the second")
		}
		second()
		synctest.Wait()
		if !ended {
			t.Error("it goes on waiting")
		}
		o.close()() // again, and nothing is in progress
	})
}

package cluster

import (
	"errors"
	"testing"
	"testing/synctest"
)

func TestCloseWaitsForWhatHasBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		first, err := g.Enter()
		if err != nil {
			t.Fatal(err)
		}
		second, err := g.Enter()
		if err != nil {
			t.Fatal(err)
		}
		wait, ended := g.Close(), false
		go func() { wait(); ended = true }()
		if _, err := g.Enter(); !errors.Is(err, ErrClosed) {
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
		g.Close()() // again, and nobody is inside
	})
}

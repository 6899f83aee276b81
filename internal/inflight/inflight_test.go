package inflight_test

import (
	"testing"
	"testing/synctest"

	"github.com/meshtask/consul-ecs/internal/inflight"
)

func TestCloseWaitsForOperations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g inflight.Group
		first, _ := g.Begin()
		second, _ := g.Begin()
		closing, wait := g.Close()
		if !closing {
			t.Error("the first Close is not reported as the first")
		}
		ended := false
		go func() { wait(); ended = true }()
		if _, ok := g.Begin(); ok {
			t.Error("an operation began after Close")
		}
		first()
		synctest.Wait()
		if ended {
			t.Error("Close has not waited for the second operation")
		}
		second()
		synctest.Wait()
		if !ended {
			t.Error("Close waits, but no operation is in progress")
		}
		again, wait := g.Close()
		if again {
			t.Error("the second Close is reported as the first")
		}
		wait() // returns: nothing is in progress
	})
}

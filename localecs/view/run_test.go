package view_test

import (
	"testing"

	"github.com/meshtask/consul-ecs/localecs/view"
)

func TestStepNamesItsTaskOnce(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]view.RecordedStep{
		"freeze api-1/envoy":   {Task: "api-1", Text: "freeze api-1/envoy"},
		"api-1 metadata hangs": {Task: "api-1", Text: "metadata hangs"}, "sts hangs": {Text: "sts hangs"},
	} {
		if got := s.About(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

package workload

import "testing"

func TestStopSignalIsReadAsAnImageHasIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"SIGQUIT": "QUIT", "quit": "QUIT", "WINCH": "WINCH", "3": "QUIT",
		"15": "TERM", "28": "WINCH"} {
		if got, ok := ParseStopSignal(text); got != want || !ok {
			t.Errorf("%s: %s, %t, want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "KILL", "9", "SIGRTMIN+3", "37"} {
		if name, ok := ParseStopSignal(text); ok {
			t.Errorf("%q is %s, want it refused", text, name)
		}
	}
}

package workload

import (
	"slices"
	"strings"
)

// StopSignals are the signals that app-entrypoint holds back, as -stop-signal names them.
var StopSignals = []string{"TERM", "HUP", "INT", "QUIT", "USR1", "USR2", "WINCH"}

// ParseStopSignal returns the name of a signal that app-entrypoint holds back, which is given as
// an image has its STOPSIGNAL: a name with or without SIG, or Linux's number.
func ParseStopSignal(text string) (name string, ok bool) {
	numbers := map[string]string{"1": "HUP", "2": "INT", "3": "QUIT", "10": "USR1", "12": "USR2", "15": "TERM",
		"28": "WINCH"}
	if name, ok := numbers[text]; ok {
		return name, true
	}
	name = strings.TrimPrefix(strings.ToUpper(text), "SIG")
	return name, slices.Contains(StopSignals, name)
}

package bootstrap

import (
	"fmt"
	"strings"
)

// Violation is one value that no bootstrap can be made of.
type Violation struct {
	// Path names the value, such as proxy.config.envoy_statsd_url. What stands
	// in proxy.config may come from proxy-defaults in Consul as well.
	Path string
	// Message names what is allowed.
	Message string
}

// InvalidError is every violation found at once. Trying again does not help.
type InvalidError struct{ Violations []Violation }

// Error has one line per violation.
func (e *InvalidError) Error() string {
	var b strings.Builder
	b.WriteString("generate Envoy bootstrap: invalid values")
	for _, v := range e.Violations {
		b.WriteString("\n  " + v.Path + ": " + v.Message)
	}
	return b.String()
}

// violations collects what is wrong while the rest is still being read.
type violations struct{ list []Violation }

func (v *violations) add(path, format string, args ...any) {
	v.list = append(v.list, Violation{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (v *violations) err() error {
	if len(v.list) == 0 {
		return nil
	}
	return &InvalidError{Violations: v.list}
}

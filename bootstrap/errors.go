package bootstrap

import (
	"fmt"
	"strings"
)

// Violation is one value that a bootstrap cannot be made from.
type Violation struct {
	// Path names the value, such as proxy.config.envoy_statsd_url. Values of
	// proxy.config may also come from proxy-defaults in Consul.
	Path string
	// Message names what is allowed.
	Message string
}

// InvalidError lists all violations. A retry does not help.
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

// violations collects violations while the rest is read.
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

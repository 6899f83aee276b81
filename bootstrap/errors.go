package bootstrap

import (
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/config"
)

// InvalidError lists all values that a bootstrap cannot be made from. A path such as
// proxy.config.envoy_statsd_url may also be that of a value of proxy-defaults in Consul.
// A retry does not help.
type InvalidError struct{ Violations []config.Finding }

// Error returns one line per violation.
func (e *InvalidError) Error() string {
	var b strings.Builder
	b.WriteString("generate Envoy bootstrap: invalid values")
	for _, v := range e.Violations {
		b.WriteString("\n  " + v.Path + ": " + v.Message)
	}
	return b.String()
}

func (e *InvalidError) add(path, format string, args ...any) {
	e.Violations = append(e.Violations, config.Finding{Path: path, Message: fmt.Sprintf(format, args...)})
}

// err returns e, if anything is wrong.
func (e *InvalidError) err() error {
	if len(e.Violations) == 0 {
		return nil
	}
	return e
}

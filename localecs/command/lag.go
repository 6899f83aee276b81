package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/controlplane/record"
)

// lag is the value of -lag.
type lag struct{ record.Lag }

// fields are the parts of the flag, by name.
func (l *lag) fields() map[string]*time.Duration {
	return map[string]*time.Duration{"new": &l.New, "eni": &l.Interface, "tags": &l.Tags, "lists": &l.Lists}
}

// String implements flag.Value.
func (l *lag) String() string { return "" }

// Set implements flag.Value.
func (l *lag) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(part, "=")
		to, known := l.fields()[name]
		if !known {
			return fmt.Errorf("want new=D,eni=D,tags=D,lists=D or some of them, got %q", part)
		}
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return fmt.Errorf("%s: want a duration such as 2s, got %q", name, value)
		}
		*to = d
	}
	return nil
}

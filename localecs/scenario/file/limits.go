package file

import "fmt"

// Limits say how many requests of a phase may fail. The zero value says nothing.
type Limits struct {
	// Min and Max are included; nil means that there is none.
	Min *int `json:"min_failed,omitempty"`
	Max *int `json:"max_failed,omitempty"`
}

// Exactly is the Limits that n requests fail.
func Exactly(n int) Limits { return Limits{Min: &n, Max: &n} }

// Say whether there are any limits.
func (l Limits) Say() bool { return l.Min != nil || l.Max != nil }

// String is how many may fail, for a table.
func (l Limits) String() string {
	switch {
	case l.Min != nil && l.Max != nil && *l.Min == *l.Max:
		return fmt.Sprint(*l.Max)
	case l.Min != nil && l.Max != nil:
		return fmt.Sprintf("%d to %d", *l.Min, *l.Max)
	case l.Max != nil:
		return fmt.Sprintf("at most %d", *l.Max)
	case l.Min != nil:
		return fmt.Sprintf("at least %d", *l.Min)
	}
	return "-"
}

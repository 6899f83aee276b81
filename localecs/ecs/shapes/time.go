package shapes

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Time is a moment as the ECS API writes it: epoch seconds with milliseconds.
type Time struct{ time.Time }

// At returns the moment in milliseconds, as ECS keeps it.
func At(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Millisecond)}
}

// Seconds returns the moment as a number.
func (t Time) Seconds() float64 { return float64(t.UnixMilli()) / 1000 }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, t.Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Time) UnmarshalJSON(text []byte) error {
	var seconds *float64
	if err := json.Unmarshal(text, &seconds); err != nil {
		return fmt.Errorf("want epoch seconds, got %s", text)
	}
	*t = Time{}
	if seconds != nil {
		*t = Time{time.UnixMilli(int64(math.Round(*seconds * 1000))).UTC()}
	}
	return nil
}
